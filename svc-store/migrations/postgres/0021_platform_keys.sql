-- The keys of the platform API. They belong to no tenant, and a revoked one stays.
CREATE TABLE platform_keys (
    key_hash     bytea       NOT NULL PRIMARY KEY CHECK (length(key_hash) = 32),
    id           uuid        NOT NULL UNIQUE,
    name         text,
    scopes       text        NOT NULL,
    prefix       text        NOT NULL,
    created_at   timestamptz NOT NULL,
    created_by   text        NOT NULL,
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);

-- The idempotency keys of a platform key are its own: its id takes the place of that of a tenant.
ALTER TABLE idempotency DROP CONSTRAINT idempotency_tenant_id_fkey;
