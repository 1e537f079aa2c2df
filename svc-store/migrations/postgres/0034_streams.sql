-- Streams of events to an engine: of the server (its ids are nil) and of subscriptions. A lease lets one process at a time
-- send a stream (svc_core::webhooks::streams). There are no foreign keys: the stream of the server has no tenant, and no
-- position of a stream waits for the lock of its tenant.
CREATE TABLE streams (
    tenant_id     uuid        NOT NULL,
    id            uuid        NOT NULL,
    begins_at     bigint      NOT NULL,
    lease         uuid,
    lease_ends_at bigint,
    PRIMARY KEY (tenant_id, id)
);

-- Until when the events of an account were sent. All times are in microseconds since 1970, as the clock of the account that
-- they are compared with.
CREATE TABLE stream_positions (
    tenant_id  uuid   NOT NULL,
    stream_id  uuid   NOT NULL,
    sent_until bigint NOT NULL,
    PRIMARY KEY (tenant_id, stream_id)
);

-- Where the events of a subscription go in place of deliveries: the URL of a stream, encrypted as it may have a password.
ALTER TABLE subscriptions ADD COLUMN stream_url bytea;
