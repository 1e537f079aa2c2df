-- Apps of somebody else, the accounts that let them work on them, and the codes and tokens with which they do (OAuth 2.0).
CREATE TABLE oauth_apps (
    id             uuid             NOT NULL PRIMARY KEY,
    client_id      text COLLATE "C" NOT NULL UNIQUE,
    -- The account whose people develop the app. NULL for one of whoever runs the service.
    tenant_id      uuid             REFERENCES tenants (id),
    confidential   boolean          NOT NULL,
    created_at     timestamptz      NOT NULL,
    created_by     text             NOT NULL,
    name           text             NOT NULL,
    website        text,
    redirect_uris  text             NOT NULL,
    can_write      boolean          NOT NULL,
    disconnect_url text,
    -- The subscription of the platform account that tells the app of its disconnection.
    webhook_id     uuid,
    disabled_at    timestamptz,
    secret_hash    bytea            CHECK (length(secret_hash) = 32),
    previous_hash  bytea            CHECK (length(previous_hash) = 32),
    previous_until timestamptz,
    CHECK ((secret_hash IS NOT NULL) = confidential)
);
CREATE INDEX oauth_apps_of_owner ON oauth_apps (tenant_id, id);

CREATE TABLE oauth_grants (
    tenant_id    uuid        NOT NULL REFERENCES tenants (id),
    id           uuid        NOT NULL,
    app_id       uuid        NOT NULL REFERENCES oauth_apps (id),
    can_write    boolean     NOT NULL,
    member       text        NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    requests     bigint      NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (app_id, tenant_id)
);

CREATE TABLE oauth_codes (
    code_hash    bytea       NOT NULL PRIMARY KEY CHECK (length(code_hash) = 32),
    id           uuid        NOT NULL,
    tenant_id    uuid        NOT NULL REFERENCES tenants (id),
    grant_id     uuid        NOT NULL,
    app_id       uuid        NOT NULL,
    can_write    boolean     NOT NULL,
    redirect_uri text,
    challenge    bytea       NOT NULL CHECK (length(challenge) = 32),
    resource     text,
    expires_at   timestamptz NOT NULL,
    is_used      boolean     NOT NULL,
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id)
);
CREATE INDEX oauth_codes_of_grant ON oauth_codes (tenant_id, grant_id);
CREATE INDEX oauth_codes_expired ON oauth_codes (expires_at);

CREATE TABLE oauth_tokens (
    token_hash       bytea       NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    authorization_id uuid        NOT NULL,
    tenant_id        uuid        NOT NULL REFERENCES tenants (id),
    grant_id         uuid        NOT NULL,
    app_id           uuid        NOT NULL,
    is_refresh       boolean     NOT NULL,
    can_write        boolean     NOT NULL,
    resource         text,
    expires_at       timestamptz NOT NULL,
    nonce            bytea       NOT NULL CHECK (length(nonce) = 32),
    successor        bytea       CHECK (length(successor) = 32),
    replaced_at      timestamptz,
    FOREIGN KEY (tenant_id, grant_id) REFERENCES oauth_grants (tenant_id, id),
    CHECK ((successor IS NULL) = (replaced_at IS NULL))
);
CREATE INDEX oauth_tokens_of_grant ON oauth_tokens (tenant_id, grant_id, is_refresh, expires_at);
CREATE INDEX oauth_tokens_of_authorization ON oauth_tokens (tenant_id, authorization_id);
CREATE INDEX oauth_tokens_expired ON oauth_tokens (expires_at);

-- The grant of the app that a subscription belongs to. NULL for one of the account itself.
ALTER TABLE subscriptions ADD COLUMN IF NOT EXISTS grant_id uuid;
