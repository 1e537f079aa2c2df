-- Apps of somebody else, the accounts that let them work on them, and the codes and tokens with which they do (OAuth 2.0).
CREATE TABLE oauth_apps (
    id             BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    client_id      TEXT    NOT NULL UNIQUE,
    -- The account whose people develop the app. NULL for one of whoever runs the service.
    tenant_id      BLOB    REFERENCES tenants (id),
    confidential   INTEGER NOT NULL CHECK (confidential IN (0, 1)),
    created_at     INTEGER NOT NULL,
    created_by     TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    website        TEXT,
    redirect_uris  TEXT    NOT NULL,
    can_write      INTEGER NOT NULL CHECK (can_write IN (0, 1)),
    disconnect_url TEXT,
    -- The subscription of the platform account that tells the app of its disconnection.
    webhook_id     BLOB    CHECK (length(webhook_id) = 16),
    disabled_at    INTEGER,
    secret_hash    BLOB    CHECK (length(secret_hash) = 32),
    previous_hash  BLOB    CHECK (length(previous_hash) = 32),
    previous_until INTEGER,
    CHECK ((secret_hash IS NOT NULL) = confidential)
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_apps_of_owner ON oauth_apps (tenant_id, id);

CREATE TABLE oauth_grants (
    tenant_id    BLOB    NOT NULL REFERENCES tenants (id),
    id           BLOB    NOT NULL CHECK (length(id) = 16),
    app_id       BLOB    NOT NULL REFERENCES oauth_apps (id),
    can_write    INTEGER NOT NULL CHECK (can_write IN (0, 1)),
    member       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    requests     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (app_id, tenant_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE oauth_codes (
    code_hash    BLOB    NOT NULL PRIMARY KEY CHECK (length(code_hash) = 32),
    id           BLOB    NOT NULL CHECK (length(id) = 16),
    tenant_id    BLOB    NOT NULL REFERENCES tenants (id),
    grant_id     BLOB    NOT NULL,
    app_id       BLOB    NOT NULL,
    can_write    INTEGER NOT NULL CHECK (can_write IN (0, 1)),
    redirect_uri TEXT,
    challenge    BLOB    NOT NULL CHECK (length(challenge) = 32),
    resource     TEXT,
    expires_at   INTEGER NOT NULL,
    is_used      INTEGER NOT NULL CHECK (is_used IN (0, 1)),
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_codes_of_grant ON oauth_codes (tenant_id, grant_id);
CREATE INDEX oauth_codes_expired ON oauth_codes (expires_at);

CREATE TABLE oauth_tokens (
    token_hash       BLOB    NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    authorization_id BLOB    NOT NULL CHECK (length(authorization_id) = 16),
    tenant_id        BLOB    NOT NULL REFERENCES tenants (id),
    grant_id         BLOB    NOT NULL,
    app_id           BLOB    NOT NULL,
    is_refresh       INTEGER NOT NULL CHECK (is_refresh IN (0, 1)),
    can_write        INTEGER NOT NULL CHECK (can_write IN (0, 1)),
    resource         TEXT,
    expires_at       INTEGER NOT NULL,
    nonce            BLOB    NOT NULL CHECK (length(nonce) = 32),
    successor        BLOB    CHECK (length(successor) = 32),
    replaced_at      INTEGER,
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id),
    CHECK ((successor IS NULL) = (replaced_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_tokens_of_grant ON oauth_tokens (tenant_id, grant_id, is_refresh, expires_at);
CREATE INDEX oauth_tokens_of_authorization ON oauth_tokens (tenant_id, authorization_id);
CREATE INDEX oauth_tokens_expired ON oauth_tokens (expires_at);

-- The grant of the app that a subscription belongs to. NULL for one of the account itself.
ALTER TABLE subscriptions ADD COLUMN grant_id BLOB;
