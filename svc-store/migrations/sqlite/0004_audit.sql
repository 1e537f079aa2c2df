-- Who changed what. Nothing is ever changed or deleted in it.
CREATE TABLE audit_log (
    tenant_id   BLOB    NOT NULL REFERENCES tenants (id),
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    at          INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    object_kind TEXT    NOT NULL,
    object_id   BLOB    NOT NULL CHECK (length(object_id) = 16),
    -- JSON without secrets.
    before      TEXT,
    after       TEXT,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_log_is_not_changed BEFORE UPDATE ON audit_log
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_log_is_not_deleted BEFORE DELETE ON audit_log
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
