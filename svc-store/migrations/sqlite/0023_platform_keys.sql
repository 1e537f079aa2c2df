-- The keys of the platform API. They belong to no tenant, and a revoked one stays.
CREATE TABLE platform_keys (
    key_hash     BLOB    NOT NULL PRIMARY KEY CHECK (length(key_hash) = 32),
    id           BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    name         TEXT,
    scopes       TEXT    NOT NULL,
    prefix       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT    NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    revoked_by   TEXT,
    CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
) STRICT, WITHOUT ROWID;

-- The idempotency keys of a platform key are its own: its id takes the place of that of a tenant.
CREATE TABLE idempotency_of_all (
    tenant_id   BLOB    NOT NULL CHECK (length(tenant_id) = 16),
    key         TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    status      INTEGER NOT NULL,
    location    TEXT,
    etag        TEXT,
    -- Encrypted: the response to a new subscription holds its secret.
    body        BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO idempotency_of_all SELECT * FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE idempotency_of_all RENAME TO idempotency;
CREATE INDEX idempotency_expired ON idempotency (created_at);
