-- A contact that was never changed was created and changed at the same time, so one index has such contacts in both orders.
-- Only those that were changed need an index for each. So a new contact enters one index by email in place of two.
CREATE INDEX contacts_unchanged_by_email ON contacts (tenant_id, lower(email), live, created_at)
    WHERE updated_at = created_at;
CREATE INDEX contacts_changed_by_email ON contacts (tenant_id, lower(email), live, created_at)
    WHERE updated_at <> created_at;
CREATE INDEX contacts_changed_by_email_and_change ON contacts (tenant_id, lower(email), live, updated_at)
    WHERE updated_at <> created_at;
DROP INDEX contacts_by_email;
DROP INDEX contacts_by_email_changed;

-- What the planner is to believe (see 0001).
DELETE FROM sqlite_stat1 WHERE idx IN ('contacts_by_email', 'contacts_by_email_changed');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('contacts', 'contacts_unchanged_by_email', '1000000 50000 2 2 1'),
    ('contacts', 'contacts_changed_by_email', '1000000 50000 2 2 1'),
    ('contacts', 'contacts_changed_by_email_and_change', '1000000 50000 2 2 1');
ANALYZE sqlite_schema;
