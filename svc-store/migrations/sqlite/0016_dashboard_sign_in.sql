-- Links that sign a person in to the dashboard once. Using one deletes it.
CREATE TABLE dashboard_links (
    token_hash BLOB    NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    -- NULL for a link of an operator.
    tenant_id  BLOB    REFERENCES tenants (id),
    role       TEXT    NOT NULL CHECK (role IN ('viewer', 'developer', 'owner')),
    identity   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX dashboard_links_expired ON dashboard_links (expires_at);

-- Who is signed in to the dashboard. Revoking a session deletes it.
CREATE TABLE dashboard_sessions (
    id               BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    token_hash       BLOB    NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    -- NULL for a session of an operator.
    tenant_id        BLOB    REFERENCES tenants (id),
    role             TEXT    NOT NULL CHECK (role IN ('viewer', 'developer', 'owner')),
    identity         TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    last_used_at     INTEGER NOT NULL,
    -- The tenant that an operator looks at.
    viewed_tenant_id BLOB    REFERENCES tenants (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX dashboard_sessions_of_tenant ON dashboard_sessions (tenant_id, id);
CREATE INDEX dashboard_sessions_expired ON dashboard_sessions (expires_at);
