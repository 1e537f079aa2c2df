-- What is to become an event of the platform account. The transaction that makes the event deletes the row.
CREATE TABLE operational_events (
    id   uuid NOT NULL PRIMARY KEY,
    kind text NOT NULL,
    data json NOT NULL
);

-- Whether it was reported that the key expires.
ALTER TABLE api_keys ADD COLUMN expiry_reported boolean NOT NULL DEFAULT FALSE;
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE revoked_at IS NULL AND expiry_reported = FALSE;
