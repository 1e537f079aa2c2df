-- A contact that was never changed was created and changed at the same time, so one index has such contacts in both orders.
-- Only those that were changed need an index for each. So a new contact enters one index by email in place of two.
-- The indexes are built while writes go on; an attempt that was interrupted leaves an index that is not valid.
DROP INDEX CONCURRENTLY IF EXISTS contacts_unchanged_by_email;
CREATE INDEX CONCURRENTLY contacts_unchanged_by_email ON contacts (tenant_id, live, lower(email), created_at)
    WHERE updated_at = created_at;
DROP INDEX CONCURRENTLY IF EXISTS contacts_changed_by_email;
CREATE INDEX CONCURRENTLY contacts_changed_by_email ON contacts (tenant_id, live, lower(email), created_at)
    WHERE updated_at <> created_at;
DROP INDEX CONCURRENTLY IF EXISTS contacts_changed_by_email_and_change;
CREATE INDEX CONCURRENTLY contacts_changed_by_email_and_change ON contacts (tenant_id, live, lower(email), updated_at)
    WHERE updated_at <> created_at;
DROP INDEX CONCURRENTLY IF EXISTS contacts_by_email;
DROP INDEX CONCURRENTLY IF EXISTS contacts_by_email_changed;
DROP INDEX CONCURRENTLY IF EXISTS contacts_deleted_by_email;
DROP INDEX CONCURRENTLY IF EXISTS contacts_deleted_by_email_changed;
