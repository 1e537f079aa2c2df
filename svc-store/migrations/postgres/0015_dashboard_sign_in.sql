-- Links that sign a person in to the dashboard once. Using one deletes it.
CREATE TABLE dashboard_links (
    token_hash bytea       NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    id         uuid        NOT NULL,
    -- NULL for a link of an operator.
    tenant_id  uuid        REFERENCES tenants (id),
    role       text        NOT NULL CHECK (role IN ('viewer', 'developer', 'owner')),
    identity   text        NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX dashboard_links_expired ON dashboard_links (expires_at);

-- Who is signed in to the dashboard. Revoking a session deletes it.
CREATE TABLE dashboard_sessions (
    id               uuid        NOT NULL PRIMARY KEY,
    token_hash       bytea       NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    -- NULL for a session of an operator.
    tenant_id        uuid        REFERENCES tenants (id),
    role             text        NOT NULL CHECK (role IN ('viewer', 'developer', 'owner')),
    identity         text        NOT NULL,
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    last_used_at     timestamptz NOT NULL,
    -- The tenant that an operator looks at.
    viewed_tenant_id uuid        REFERENCES tenants (id)
);
CREATE INDEX dashboard_sessions_of_tenant ON dashboard_sessions (tenant_id, id);
CREATE INDEX dashboard_sessions_expired ON dashboard_sessions (expires_at);
