-- The account whose sandbox a tenant is, and the sandbox of an account. There is no foreign key, as tenants are copied in the
-- order of their ids.
ALTER TABLE tenants ADD COLUMN sandbox_of uuid;
ALTER TABLE tenants ADD COLUMN sandbox_id uuid;

-- Whoever is asked for the work that failed leaves out sandboxes, which are few.
CREATE INDEX tenants_sandboxes ON tenants (id) WHERE sandbox_of IS NOT NULL;

-- The audit log of a sandbox goes with it.
DROP TRIGGER audit_log_is_append_only ON audit_log;
CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE FUNCTION refuse_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT sandbox_of FROM tenants WHERE id = OLD.tenant_id) IS NULL THEN
        RAISE EXCEPTION 'the audit log is append-only';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER audit_log_is_not_deleted BEFORE DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_deletion();
