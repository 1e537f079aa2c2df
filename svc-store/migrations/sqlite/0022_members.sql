-- The people who may sign in to the dashboard of a tenant. Addresses are in lower case.
CREATE TABLE members (
    tenant_id  BLOB    NOT NULL REFERENCES tenants (id),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    email      TEXT    NOT NULL,
    role       TEXT    NOT NULL CHECK (role IN ('viewer', 'developer', 'owner')),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, email)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_email ON members (email, tenant_id);

-- The address of the member whose session it is. NULL for a session that a link began.
ALTER TABLE dashboard_sessions ADD COLUMN email TEXT;
