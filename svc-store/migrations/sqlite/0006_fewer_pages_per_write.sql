-- What a write costs is the pages that it touches, each of them written to the log and then to the file.

-- Contacts that share an address are few, and sorted when they are asked for by change.
DROP INDEX contacts_by_email_changed;

-- The id of a delivery is made for the time of its event, so the deliveries of an event are a span of ids.
DROP INDEX deliveries_of_event;

-- A table without a clustered key appends the rows of all tenants to the same few pages, and is split by none.
CREATE TABLE new_events (
    tenant_id  BLOB    NOT NULL REFERENCES tenants (id),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    kind       TEXT    NOT NULL,
    data       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    -- The one subscription that it is meant for, such as a test of it; NULL for all that want its kind.
    only_for   BLOB    CHECK (length(only_for) = 16),
    PRIMARY KEY (tenant_id, id)
) STRICT;
INSERT INTO new_events (tenant_id, id, kind, data, created_at, only_for)
    SELECT tenant_id, id, kind, data, created_at, only_for FROM events ORDER BY created_at;
DROP TABLE events;
ALTER TABLE new_events RENAME TO events;

-- An event is deleted only when it has no delivery. A foreign key would need an index to see that.
CREATE TABLE new_deliveries (
    tenant_id       BLOB    NOT NULL,
    id              BLOB    NOT NULL CHECK (length(id) = 16),
    event_id        BLOB    NOT NULL,
    kind            TEXT    NOT NULL,
    subscription_id BLOB    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed', 'held')),
    attempts        INTEGER NOT NULL CHECK (attempts >= 0),
    failures        INTEGER NOT NULL CHECK (failures BETWEEN 0 AND attempts),
    last_status     INTEGER,
    -- When the next attempt is due; while one is being made, when its lease ends.
    next_attempt_at INTEGER CHECK ((next_attempt_at IS NOT NULL) = (state = 'pending')),
    lease           BLOB,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
) STRICT;
INSERT INTO new_deliveries (tenant_id, id, event_id, kind, subscription_id, state, attempts, failures, last_status,
    next_attempt_at, lease, created_at)
    SELECT tenant_id, id, event_id, kind, subscription_id, state, attempts, failures, last_status, next_attempt_at,
    lease, created_at FROM deliveries ORDER BY created_at;
DROP TABLE deliveries;
ALTER TABLE new_deliveries RENAME TO deliveries;
CREATE INDEX deliveries_due ON deliveries (tenant_id, subscription_id, next_attempt_at) WHERE state = 'pending';
CREATE INDEX deliveries_of_subscription ON deliveries (tenant_id, subscription_id, id);

-- What the planner is to believe (see 0001).
DELETE FROM sqlite_stat1 WHERE tbl IN ('events', 'deliveries') OR idx = 'contacts_by_email_changed';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('deliveries', 'sqlite_autoindex_deliveries_1', '1000000 50000 1'),
    ('deliveries', 'deliveries_of_subscription', '1000000 50000 5000 1'),
    ('deliveries', 'deliveries_due', '10000 500 50 1');
ANALYZE sqlite_schema;
