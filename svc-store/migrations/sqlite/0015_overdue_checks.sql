-- When the invoices of a tenant are next checked for due dates that have passed: at the beginning of its next day. Those of
-- the tenants that exist are checked at once.
ALTER TABLE tenants ADD COLUMN overdue_check_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tenants_by_overdue_check ON tenants (overdue_check_at);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('tenants', 'tenants_by_overdue_check', '100000 100');
ANALYZE sqlite_schema;
