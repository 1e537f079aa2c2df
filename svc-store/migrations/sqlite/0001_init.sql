-- Ids are UUIDv7 (16 bytes) that sort like created_at, so a table clustered on (tenant_id, id) answers both
-- GET by id and "newest first" from one tree. Times are microseconds since 1970; dates are YYYY-MM-DD;
-- amounts are minor units of the row's currency (of two decimals where a row has none). Secrets are sealed blobs.

CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tenants (
    id                   BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    name                 TEXT    NOT NULL,
    developer_access     TEXT    NOT NULL CHECK (developer_access IN ('pending', 'approved', 'suspended')),
    time_zone            TEXT    NOT NULL,
    currency             TEXT    NOT NULL CHECK (length(currency) = 3),
    unique_contact_email INTEGER NOT NULL CHECK (unique_contact_email IN (0, 1)),
    created_at           INTEGER NOT NULL,
    -- The last time that a write of this tenant took.
    clock                INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE numbers (
    tenant_id BLOB    NOT NULL REFERENCES tenants (id),
    kind      TEXT    NOT NULL,
    last      INTEGER NOT NULL CHECK (last > 0),
    PRIMARY KEY (tenant_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    key_hash       BLOB    NOT NULL PRIMARY KEY CHECK (length(key_hash) = 32),
    id             BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    tenant_id      BLOB    NOT NULL REFERENCES tenants (id),
    name           TEXT,
    can_write      INTEGER NOT NULL CHECK (can_write IN (0, 1)),
    prefix         TEXT    NOT NULL,
    signing_secret BLOB,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER,
    revoked_at     INTEGER,
    last_used_at   INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id, created_at);

CREATE TABLE used_signatures (
    key_id     BLOB    NOT NULL,
    mac        BLOB    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (key_id, mac)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_signatures_expired ON used_signatures (expires_at);

CREATE TABLE idempotency (
    tenant_id   BLOB    NOT NULL REFERENCES tenants (id),
    key         TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    status      INTEGER NOT NULL,
    location    TEXT,
    etag        TEXT,
    -- Sealed: the answer to a new subscription holds its secret.
    body        BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expired ON idempotency (created_at);

-- Live rows come first in the key, so that a list of them never walks over deleted ones.
CREATE TABLE contacts (
    tenant_id    BLOB    NOT NULL REFERENCES tenants (id),
    live         INTEGER NOT NULL CHECK (live = (deleted_at IS NULL)),
    id           BLOB    NOT NULL CHECK (length(id) = 16),
    email        TEXT,
    first_name   TEXT,
    last_name    TEXT,
    phone        TEXT,
    company_name TEXT,
    city         TEXT,
    state        TEXT,
    postcode     TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    deleted_at   INTEGER,
    PRIMARY KEY (tenant_id, live, id),
    UNIQUE (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX contacts_changed ON contacts (tenant_id, live, updated_at);
CREATE INDEX contacts_by_email ON contacts (tenant_id, lower(email), live, id);
CREATE INDEX contacts_by_email_changed ON contacts (tenant_id, lower(email), live, updated_at);

CREATE TABLE invoices (
    tenant_id      BLOB    NOT NULL REFERENCES tenants (id),
    id             BLOB    NOT NULL CHECK (length(id) = 16),
    invoice_number TEXT    NOT NULL,
    contact_id     BLOB,
    status         TEXT    NOT NULL
        CHECK (status IN ('draft', 'sent', 'viewed', 'partial', 'paid', 'overdue', 'cancelled')),
    issue_date     TEXT,
    due_date       TEXT,
    total          INTEGER NOT NULL CHECK (total >= 0),
    currency       TEXT    NOT NULL CHECK (length(currency) = 3),
    paid_at        INTEGER,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    amount_paid    INTEGER NOT NULL CHECK (amount_paid BETWEEN 0 AND total),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, invoice_number),
    FOREIGN KEY (tenant_id, contact_id) REFERENCES contacts (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX invoices_changed ON invoices (tenant_id, updated_at);
CREATE INDEX invoices_by_status ON invoices (tenant_id, status, id);
CREATE INDEX invoices_by_status_changed ON invoices (tenant_id, status, updated_at);

CREATE TABLE payments (
    tenant_id  BLOB    NOT NULL REFERENCES tenants (id),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    invoice_id BLOB    NOT NULL,
    amount     INTEGER NOT NULL CHECK (amount >= 0),
    currency   TEXT    NOT NULL CHECK (length(currency) = 3),
    paid_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, invoice_id) REFERENCES invoices (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX payments_of_invoice ON payments (tenant_id, invoice_id);

CREATE TABLE bookings (
    tenant_id    BLOB    NOT NULL REFERENCES tenants (id),
    id           BLOB    NOT NULL CHECK (length(id) = 16),
    contact_id   BLOB,
    service_name TEXT,
    start_time   INTEGER NOT NULL,
    end_time     INTEGER NOT NULL CHECK (end_time > start_time),
    status       TEXT    NOT NULL CHECK (status IN ('cancelled', 'confirmed', 'completed', 'no_show')),
    notes        TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, contact_id) REFERENCES contacts (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX bookings_changed ON bookings (tenant_id, updated_at);

CREATE TABLE quotes (
    tenant_id    BLOB    NOT NULL REFERENCES tenants (id),
    id           BLOB    NOT NULL CHECK (length(id) = 16),
    quote_number TEXT    NOT NULL,
    contact_id   BLOB,
    status       TEXT    NOT NULL
        CHECK (status IN ('draft', 'sent', 'viewed', 'accepted', 'declined', 'expired', 'converted')),
    issue_date   TEXT,
    valid_until  TEXT,
    total        INTEGER NOT NULL CHECK (total >= 0),
    currency     TEXT    NOT NULL CHECK (length(currency) = 3),
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, quote_number),
    FOREIGN KEY (tenant_id, contact_id) REFERENCES contacts (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX quotes_changed ON quotes (tenant_id, updated_at);
CREATE INDEX quotes_by_status ON quotes (tenant_id, status, id);
CREATE INDEX quotes_by_status_changed ON quotes (tenant_id, status, updated_at);

CREATE TABLE jobs (
    tenant_id       BLOB    NOT NULL REFERENCES tenants (id),
    id              BLOB    NOT NULL CHECK (length(id) = 16),
    job_number      TEXT    NOT NULL,
    title           TEXT    NOT NULL,
    status          TEXT    NOT NULL CHECK (
        status IN ('quoted', 'scheduled', 'in_progress', 'on_hold', 'completed', 'invoiced', 'cancelled')
    ),
    job_type        TEXT,
    priority        TEXT,
    contact_id      BLOB,
    customer_name   TEXT,
    customer_email  TEXT,
    customer_phone  TEXT,
    site_address    TEXT,
    site_suburb     TEXT,
    site_state      TEXT,
    site_postcode   TEXT,
    scheduled_start INTEGER,
    scheduled_end   INTEGER CHECK (scheduled_end >= scheduled_start),
    actual_start    INTEGER,
    actual_end      INTEGER,
    estimated_total INTEGER CHECK (estimated_total >= 0),
    actual_total    INTEGER CHECK (actual_total >= 0),
    quote_id        BLOB,
    invoice_id      BLOB,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, job_number),
    FOREIGN KEY (tenant_id, contact_id) REFERENCES contacts (tenant_id, id),
    FOREIGN KEY (tenant_id, quote_id) REFERENCES quotes (tenant_id, id),
    FOREIGN KEY (tenant_id, invoice_id) REFERENCES invoices (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_changed ON jobs (tenant_id, updated_at);
CREATE INDEX jobs_by_status ON jobs (tenant_id, status, id);
CREATE INDEX jobs_by_status_changed ON jobs (tenant_id, status, updated_at);

CREATE TABLE subscriptions (
    tenant_id            BLOB    NOT NULL REFERENCES tenants (id),
    live                 INTEGER NOT NULL CHECK (live = (deleted_at IS NULL)),
    id                   BLOB    NOT NULL CHECK (length(id) = 16),
    url                  TEXT    NOT NULL,
    -- Event kinds separated by spaces, or *.
    events               TEXT    NOT NULL,
    enabled              INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    description          TEXT,
    created_at           INTEGER NOT NULL,
    last_delivery_at     INTEGER,
    last_delivery_status INTEGER,
    disabled_reason      TEXT CHECK (disabled_reason IN ('auto_paused')),
    paused_at            INTEGER,
    consecutive_failures INTEGER NOT NULL,
    -- Sealed, like its predecessor, which signs beside it until then.
    secret               BLOB    NOT NULL,
    previous_secret      BLOB,
    previous_until       INTEGER CHECK ((previous_until IS NULL) = (previous_secret IS NULL)),
    updated_at           INTEGER NOT NULL,
    deleted_at           INTEGER,
    PRIMARY KEY (tenant_id, live, id),
    UNIQUE (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_changed ON subscriptions (tenant_id, live, updated_at);

-- Which live, enabled or auto-paused subscriptions want which kind (or *): what a write looks up.
CREATE TABLE subscription_kinds (
    tenant_id       BLOB    NOT NULL,
    kind            TEXT    NOT NULL,
    subscription_id BLOB    NOT NULL,
    paused          INTEGER NOT NULL CHECK (paused IN (0, 1)),
    PRIMARY KEY (tenant_id, kind, subscription_id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX kinds_of_subscription ON subscription_kinds (tenant_id, subscription_id);

CREATE TABLE events (
    tenant_id  BLOB    NOT NULL REFERENCES tenants (id),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    kind       TEXT    NOT NULL,
    data       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
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
    FOREIGN KEY (tenant_id, event_id) REFERENCES events (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (tenant_id, subscription_id, next_attempt_at) WHERE state = 'pending';
CREATE INDEX deliveries_of_subscription ON deliveries (tenant_id, subscription_id, id);

CREATE TABLE delivery_attempts (
    tenant_id          BLOB    NOT NULL,
    delivery_id        BLOB    NOT NULL,
    attempt            INTEGER NOT NULL,
    started_at         INTEGER NOT NULL,
    duration_ms        INTEGER NOT NULL,
    status             INTEGER NOT NULL,
    error              TEXT,
    response_body      TEXT,
    response_truncated INTEGER NOT NULL CHECK (response_truncated IN (0, 1)),
    remote_addr        TEXT,
    PRIMARY KEY (tenant_id, delivery_id, attempt),
    FOREIGN KEY (tenant_id, delivery_id) REFERENCES deliveries (tenant_id, id)
) STRICT, WITHOUT ROWID;

-- From when on an endpoint with something to send may be picked: one row each, so that none waits for the backlog
-- of another.
CREATE TABLE turns (
    tenant_id       BLOB    NOT NULL,
    subscription_id BLOB    NOT NULL,
    at              INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_by_time ON turns (at);

CREATE TABLE replays (
    tenant_id       BLOB    NOT NULL,
    id              BLOB    NOT NULL CHECK (length(id) = 16),
    subscription_id BLOB    NOT NULL,
    since           INTEGER NOT NULL,
    until           INTEGER NOT NULL,
    -- Delivery states separated by spaces.
    statuses        TEXT    NOT NULL,
    missed          INTEGER NOT NULL CHECK (missed IN (0, 1)),
    position        INTEGER NOT NULL,
    replayed        INTEGER NOT NULL CHECK (replayed >= 0),
    created_at      INTEGER NOT NULL,
    finished_at     INTEGER,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX replays_unfinished ON replays (id) WHERE finished_at IS NULL;

-- What the planner is to believe, since ANALYZE never runs: rows in all, and rows that share the first column,
-- the first two, and so on, as if there were a million rows in 20 tenants. Without it a filtered list would walk
-- all rows of the tenant, because they already come in the right order.
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('contacts', 'contacts', '1000000 50000 45000 1'),
    ('contacts', 'contacts_changed', '1000000 50000 45000 1'),
    ('contacts', 'contacts_by_email', '1000000 50000 2 2 1'),
    ('contacts', 'contacts_by_email_changed', '1000000 50000 2 2 1'),
    ('contacts', 'sqlite_autoindex_contacts_2', '1000000 50000 1'),
    ('invoices', 'invoices', '1000000 50000 1'),
    ('invoices', 'invoices_changed', '1000000 50000 1'),
    ('invoices', 'invoices_by_status', '1000000 50000 7000 1'),
    ('invoices', 'invoices_by_status_changed', '1000000 50000 7000 1'),
    ('invoices', 'sqlite_autoindex_invoices_2', '1000000 50000 1'),
    ('quotes', 'quotes', '1000000 50000 1'),
    ('quotes', 'quotes_changed', '1000000 50000 1'),
    ('quotes', 'quotes_by_status', '1000000 50000 7000 1'),
    ('quotes', 'quotes_by_status_changed', '1000000 50000 7000 1'),
    ('quotes', 'sqlite_autoindex_quotes_2', '1000000 50000 1'),
    ('jobs', 'jobs', '1000000 50000 1'),
    ('jobs', 'jobs_changed', '1000000 50000 1'),
    ('jobs', 'jobs_by_status', '1000000 50000 7000 1'),
    ('jobs', 'jobs_by_status_changed', '1000000 50000 7000 1'),
    ('jobs', 'sqlite_autoindex_jobs_2', '1000000 50000 1');
ANALYZE sqlite_schema;
