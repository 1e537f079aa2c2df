-- Streams of events to an engine: of the server (its ids are nil) and of subscriptions. A lease lets one process at a time
-- send a stream (svc_core::webhooks::streams). There are no foreign keys: the stream of the server has no tenant.
CREATE TABLE streams (
    tenant_id     BLOB    NOT NULL CHECK (length(tenant_id) = 16),
    id            BLOB    NOT NULL CHECK (length(id) = 16),
    begins_at     INTEGER NOT NULL,
    lease         BLOB    CHECK (length(lease) = 16),
    lease_ends_at INTEGER,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

-- Until when the events of an account were sent.
CREATE TABLE stream_positions (
    tenant_id  BLOB    NOT NULL CHECK (length(tenant_id) = 16),
    stream_id  BLOB    NOT NULL CHECK (length(stream_id) = 16),
    sent_until INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, stream_id)
) STRICT, WITHOUT ROWID;

-- Where the events of a subscription go in place of deliveries: the URL of a stream, encrypted as it may have a password.
ALTER TABLE subscriptions ADD COLUMN stream_url BLOB;
