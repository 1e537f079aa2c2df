-- When the invoices of a tenant are next checked for due dates that have passed: at the beginning of its next day. Those of
-- the tenants that exist are checked at once.
ALTER TABLE tenants ADD COLUMN overdue_check_at timestamptz NOT NULL DEFAULT 'epoch';
