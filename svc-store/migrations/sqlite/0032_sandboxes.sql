-- The account whose sandbox a tenant is, and the sandbox of an account. There is no foreign key, as tenants are copied in the
-- order of their ids.
ALTER TABLE tenants ADD COLUMN sandbox_of BLOB CHECK (length(sandbox_of) = 16);
ALTER TABLE tenants ADD COLUMN sandbox_id BLOB CHECK (length(sandbox_id) = 16);

-- Whoever is asked for the work that failed leaves out sandboxes, which are few.
CREATE INDEX tenants_sandboxes ON tenants (id) WHERE sandbox_of IS NOT NULL;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('tenants', 'tenants_sandboxes', '1000 1');
ANALYZE sqlite_schema;

-- The audit log of a sandbox goes with it.
DROP TRIGGER audit_log_is_not_deleted;
CREATE TRIGGER audit_log_is_not_deleted BEFORE DELETE ON audit_log
WHEN (SELECT sandbox_of FROM tenants WHERE id = old.tenant_id) IS NULL
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
