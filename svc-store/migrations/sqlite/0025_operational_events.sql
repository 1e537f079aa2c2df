-- What is to become an event of the platform account. The transaction that makes the event deletes the row.
CREATE TABLE operational_events (
    id   BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    kind TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Whether it was reported that the key expires.
ALTER TABLE api_keys ADD COLUMN expiry_reported INTEGER NOT NULL DEFAULT 0 CHECK (expiry_reported IN (0, 1));
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE revoked_at IS NULL AND expiry_reported = FALSE;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('api_keys', 'api_keys_expiring', '1000 1');
ANALYZE sqlite_schema;
