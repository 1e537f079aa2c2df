-- Ids are UUIDv7 (16 bytes) that sort like created_at, so a table clustered on (tenant_id, id) answers both GET by id and
-- "newest first" from one tree. Times are microseconds since 1970; dates are YYYY-MM-DD; amounts are minor units of the row's
-- currency (of two decimals where a row has none). Secrets are encrypted.
--
-- What a write costs is the pages that it touches, each of them written to the log and then to the file. So tables and indexes
-- that all tenants append to have no tenant in front: the end of such a tree is a few pages.
--
-- Constraints compare a status with each of its values, since SQLite makes a table for an `IN` of more than two each time that it
-- checks one.

-- Of the database itself: the key that signs cursors, and what its secret key is checked by.
CREATE TABLE settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tenants (
    id                   BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    name                 TEXT    NOT NULL,
    developer_access     TEXT    NOT NULL CHECK (
        developer_access = 'pending' OR developer_access = 'approved' OR developer_access = 'suspended'
    ),
    time_zone            TEXT    NOT NULL,
    currency             TEXT    NOT NULL CHECK (length(currency) = 3),
    unique_contact_email INTEGER NOT NULL CHECK (unique_contact_email IN (0, 1)),
    created_at           INTEGER NOT NULL,
    -- The time of the tenant's last write.
    clock                INTEGER NOT NULL,
    -- What the tenant's keys may do in place of the server's rate limits, such as 'all=600 quotes=5'. NULL when nothing differs.
    limits               TEXT,
    -- How many live webhook subscriptions it may have. NULL for the limit of the server.
    max_webhooks         INTEGER CHECK (max_webhooks BETWEEN 1 AND 1000),
    -- When its invoices are next checked for due dates that have passed: at the beginning of its next day.
    overdue_check_at     INTEGER NOT NULL DEFAULT 0,
    -- The account whose sandbox the tenant is, and the sandbox of an account. There is no foreign key, as tenants are copied in
    -- the order of their ids.
    sandbox_of           BLOB    CHECK (length(sandbox_of) = 16),
    sandbox_id           BLOB    CHECK (length(sandbox_id) = 16),
    -- What invoices and quotes say about the business.
    address              TEXT,
    tax_number           TEXT,
    -- How many days after its issue an invoice is due that names no due date. NULL for none.
    days_until_due       INTEGER CHECK (days_until_due BETWEEN 0 AND 365),
    payment_details      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX tenants_by_overdue_check ON tenants (overdue_check_at);
-- A search for work that failed leaves out sandboxes, which are few.
CREATE INDEX tenants_sandboxes ON tenants (id) WHERE sandbox_of IS NOT NULL;

-- The last number that was given to an invoice, a quote or a job.
CREATE TABLE numbers (
    tenant_id BLOB    NOT NULL REFERENCES tenants (id),
    kind      TEXT    NOT NULL,
    last      INTEGER NOT NULL CHECK (last > 0),
    PRIMARY KEY (tenant_id, kind)
) STRICT, WITHOUT ROWID;

-- Keys, and the requests that are made with them.

CREATE TABLE api_keys (
    key_hash                 BLOB    NOT NULL PRIMARY KEY CHECK (length(key_hash) = 32),
    id                       BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    tenant_id                BLOB    NOT NULL REFERENCES tenants (id),
    name                     TEXT,
    can_write                INTEGER NOT NULL CHECK (can_write IN (0, 1)),
    prefix                   TEXT    NOT NULL,
    signing_secret           BLOB,
    created_at               INTEGER NOT NULL,
    expires_at               INTEGER,
    revoked_at               INTEGER,
    last_used_at             INTEGER,
    -- How long the key was made to work. NULL for a key without expiry. A rotation moves the expiry of the old key to the end of
    -- the overlap, and its replacement gets the lifetime.
    lifetime                 INTEGER,
    -- The latest expiry among the key's used signatures that were deleted. NULL while none was. A signature that expires no later
    -- than this may have been used.
    signatures_deleted_until INTEGER,
    -- Whether it was reported that the key expires.
    expiry_reported          INTEGER NOT NULL DEFAULT 0 CHECK (expiry_reported IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id, created_at);
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE revoked_at IS NULL AND expiry_reported = FALSE;

CREATE TABLE used_signatures (
    key_id     BLOB    NOT NULL,
    mac        BLOB    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (key_id, mac)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_signatures_expired ON used_signatures (expires_at);

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

-- The responses to requests with an idempotency key. For a request with a platform key, its id takes the place of a tenant's.
CREATE TABLE idempotency (
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
CREATE INDEX idempotency_expired ON idempotency (created_at);

-- The newest API requests of each tenant, without bodies. Nothing refers to other tables: a request is logged after its
-- transaction.
CREATE TABLE request_log (
    id             BLOB    NOT NULL PRIMARY KEY,
    tenant_id      BLOB    NOT NULL,
    request_id     TEXT    NOT NULL,
    key_id         BLOB    NOT NULL,
    method         TEXT    NOT NULL,
    path           TEXT    NOT NULL,
    query          TEXT,
    status         INTEGER NOT NULL,
    code           TEXT,
    failing_fields TEXT,
    started_at     INTEGER NOT NULL,
    duration_us    INTEGER NOT NULL,
    events         INTEGER NOT NULL,
    first_event_id BLOB,
    last_event_id  BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX request_log_of_tenant ON request_log (tenant_id, id);

-- Records. Operators name an invoice, a quote, a webhook subscription or a delivery by its id, without its account, so each has an
-- index for that.

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
    -- How far the erasure of the contact has come, while one is under way (svc_core::personal::erase).
    erasure      TEXT,
    PRIMARY KEY (tenant_id, live, id),
    UNIQUE (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX contacts_changed ON contacts (tenant_id, live, updated_at);
-- A contact that was never changed was created and changed at the same time, so one index has such contacts in both orders, and
-- a new contact enters one index by email in place of two.
CREATE INDEX contacts_unchanged_by_email ON contacts (tenant_id, lower(email), live, created_at)
    WHERE updated_at = created_at;
CREATE INDEX contacts_changed_by_email ON contacts (tenant_id, lower(email), live, created_at)
    WHERE updated_at <> created_at;
CREATE INDEX contacts_changed_by_email_and_change ON contacts (tenant_id, lower(email), live, updated_at)
    WHERE updated_at <> created_at;

CREATE TABLE invoices (
    tenant_id      BLOB    NOT NULL REFERENCES tenants (id),
    id             BLOB    NOT NULL CHECK (length(id) = 16),
    invoice_number TEXT    NOT NULL,
    contact_id     BLOB,
    status         TEXT    NOT NULL CHECK (
        status = 'draft' OR status = 'sent' OR status = 'viewed' OR status = 'partial' OR status = 'paid' OR status = 'overdue'
        OR status = 'cancelled'
    ),
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
CREATE INDEX invoices_by_id ON invoices (id);
CREATE INDEX invoices_by_due_date ON invoices (tenant_id, due_date, id)
    WHERE status <> 'draft' AND status <> 'paid' AND status <> 'cancelled' AND due_date IS NOT NULL;
CREATE INDEX invoices_of_contact ON invoices (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;

CREATE TABLE payments (
    tenant_id  BLOB    NOT NULL REFERENCES tenants (id),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    invoice_id BLOB    NOT NULL,
    amount     INTEGER NOT NULL CHECK (amount >= 0),
    currency   TEXT    NOT NULL CHECK (length(currency) = 3),
    paid_at    INTEGER NOT NULL,
    is_refund  INTEGER NOT NULL CHECK (is_refund IN (0, 1)),
    method     TEXT,
    reference  TEXT,
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
    status       TEXT    NOT NULL CHECK (
        status = 'cancelled' OR status = 'confirmed' OR status = 'completed' OR status = 'no_show'
    ),
    notes        TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, contact_id) REFERENCES contacts (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX bookings_changed ON bookings (tenant_id, updated_at);
CREATE INDEX bookings_by_status ON bookings (tenant_id, status, id);
CREATE INDEX bookings_by_status_changed ON bookings (tenant_id, status, updated_at);
CREATE INDEX bookings_by_start ON bookings (tenant_id, start_time, id);
CREATE INDEX bookings_of_contact ON bookings (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;

CREATE TABLE quotes (
    tenant_id    BLOB    NOT NULL REFERENCES tenants (id),
    id           BLOB    NOT NULL CHECK (length(id) = 16),
    quote_number TEXT    NOT NULL,
    contact_id   BLOB,
    status       TEXT    NOT NULL CHECK (
        status = 'draft' OR status = 'sent' OR status = 'viewed' OR status = 'accepted' OR status = 'declined'
        OR status = 'expired' OR status = 'converted'
    ),
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
CREATE INDEX quotes_by_id ON quotes (id);
CREATE INDEX quotes_of_contact ON quotes (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;

CREATE TABLE jobs (
    tenant_id       BLOB    NOT NULL REFERENCES tenants (id),
    id              BLOB    NOT NULL CHECK (length(id) = 16),
    job_number      TEXT    NOT NULL,
    title           TEXT    NOT NULL,
    status          TEXT    NOT NULL CHECK (
        status = 'quoted' OR status = 'scheduled' OR status = 'in_progress' OR status = 'on_hold' OR status = 'completed'
        OR status = 'invoiced' OR status = 'cancelled'
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
CREATE INDEX jobs_by_start ON jobs (tenant_id, scheduled_start, id) WHERE scheduled_start IS NOT NULL;
CREATE INDEX jobs_of_contact ON jobs (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;

-- Webhooks.

CREATE TABLE subscriptions (
    tenant_id               BLOB    NOT NULL REFERENCES tenants (id),
    live                    INTEGER NOT NULL CHECK (live = (deleted_at IS NULL)),
    id                      BLOB    NOT NULL CHECK (length(id) = 16),
    url                     TEXT    NOT NULL,
    -- Event kinds separated by spaces, or *.
    events                  TEXT    NOT NULL,
    enabled                 INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    description             TEXT,
    created_at              INTEGER NOT NULL,
    last_delivery_at        INTEGER,
    last_delivery_status    INTEGER,
    disabled_reason         TEXT    CHECK (disabled_reason IN ('auto_paused')),
    paused_at               INTEGER,
    consecutive_failures    INTEGER NOT NULL,
    -- Encrypted, like its predecessor, which signs beside it until then.
    secret                  BLOB    NOT NULL,
    previous_secret         BLOB,
    previous_until          INTEGER CHECK ((previous_until IS NULL) = (previous_secret IS NULL)),
    updated_at              INTEGER NOT NULL,
    deleted_at              INTEGER,
    -- While the endpoint gets one attempt at a time, after a failure: the time from which the next one can be made.
    backoff_until           INTEGER,
    -- When it last stopped sending, as long as deliveries that were pending then are still to be held or ended.
    stopped_at              INTEGER,
    -- How many attempts of the day have kept the bodies of their responses, and the delivery up to which they were deleted.
    responses_kept          INTEGER NOT NULL DEFAULT 0,
    responses_deleted_until BLOB,
    -- When a subscription that a program made for as long as it runs is deleted, unless the program still runs.
    expires_at              INTEGER,
    -- The grant of the app that it belongs to. NULL for one of the account itself.
    grant_id                BLOB,
    -- What it asks for beyond the contract (svc_core::webhooks::options). Headers, authentication, keys, certificates and the URL
    -- of a stream are encrypted.
    headers                 BLOB,
    authentication          BLOB,
    filter                  TEXT,
    payload                 TEXT,
    max_per_second          INTEGER,
    max_in_flight           INTEGER,
    timeout                 INTEGER,
    retry_schedule          TEXT,
    ordering                TEXT,
    paced_until             INTEGER,
    signature               TEXT,
    signing_keys            BLOB,
    client_certificate      BLOB,
    certificate_authority   BLOB,
    -- Where its events go in place of deliveries.
    stream_url              BLOB,
    PRIMARY KEY (tenant_id, live, id),
    UNIQUE (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_changed ON subscriptions (tenant_id, live, updated_at);
CREATE INDEX subscriptions_by_id ON subscriptions (id);
CREATE INDEX subscriptions_expiring ON subscriptions (expires_at) WHERE live = TRUE AND expires_at IS NOT NULL;

-- Which live, enabled or auto-paused subscriptions want which kind (or *): what a write looks up.
CREATE TABLE subscription_kinds (
    tenant_id       BLOB    NOT NULL,
    kind            TEXT    NOT NULL,
    subscription_id BLOB    NOT NULL,
    paused          INTEGER NOT NULL CHECK (paused IN (0, 1)),
    filter          TEXT,
    is_ordered      INTEGER NOT NULL DEFAULT 0 CHECK (is_ordered IN (0, 1)),
    PRIMARY KEY (tenant_id, kind, subscription_id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX kinds_of_subscription ON subscription_kinds (tenant_id, subscription_id);

-- Without a clustered key, the rows of all tenants go to the end.
CREATE TABLE events (
    tenant_id  BLOB    NOT NULL REFERENCES tenants (id),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    kind       TEXT    NOT NULL,
    data       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    -- The one subscription that it is meant for, such as a test of it. NULL for all that want its kind.
    only_for   BLOB    CHECK (length(only_for) = 16),
    -- Who caused it, for the log of changes.
    actor      TEXT,
    -- The record in whose history it belongs: the one that it tells of, or the invoice of a payment. NULL for a test, and for
    -- records that svc does not store.
    record_id  BLOB,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX events_of_record ON events (record_id, tenant_id, id) WHERE record_id IS NOT NULL;

-- The id of a delivery is made for the time of its event, so the deliveries of an event are a span of ids. An event is deleted
-- only when it has no delivery. A foreign key would need an index to see that.
CREATE TABLE deliveries (
    tenant_id       BLOB    NOT NULL,
    id              BLOB    NOT NULL CHECK (length(id) = 16),
    event_id        BLOB    NOT NULL,
    kind            TEXT    NOT NULL,
    subscription_id BLOB    NOT NULL,
    status          TEXT    NOT NULL CHECK (
        status = 'pending' OR status = 'succeeded' OR status = 'failed' OR status = 'held'
    ),
    attempts        INTEGER NOT NULL CHECK (attempts >= 0),
    failures        INTEGER NOT NULL CHECK (failures BETWEEN 0 AND attempts),
    last_status     INTEGER,
    -- When the next attempt is due; while one is being made, when its lease ends.
    next_attempt_at INTEGER CHECK ((next_attempt_at IS NOT NULL) = (status = 'pending')),
    lease           BLOB,
    created_at      INTEGER NOT NULL,
    -- Why it failed, if it was not for the outcome of its last attempt.
    failure_reason  TEXT,
    -- What the deliveries that wait for each other have in common, which only subscriptions have that ask for an order.
    order_key       BLOB,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
) STRICT;
CREATE INDEX deliveries_due ON deliveries (tenant_id, subscription_id, next_attempt_at) WHERE status = 'pending';
CREATE INDEX deliveries_ordered ON deliveries (tenant_id, subscription_id, order_key, id)
    WHERE order_key IS NOT NULL AND next_attempt_at IS NOT NULL;
CREATE INDEX deliveries_by_id ON deliveries (id);
-- An event for many subscriptions enters each of their ranges of an index, which are as many pages if the index is large. So
-- pending deliveries, which are few, have an index of their own, and a delivery enters the large one when it has ended. Pending
-- ones alone have a time of the next attempt; a condition on the status would make these indexes candidates for what others serve.
CREATE INDEX deliveries_pending_of_subscription ON deliveries (tenant_id, subscription_id, id)
    WHERE next_attempt_at IS NOT NULL;
CREATE INDEX deliveries_ended_of_subscription ON deliveries (tenant_id, subscription_id, id)
    WHERE next_attempt_at IS NULL;
-- What waits for an operator or a replay. Deliveries that succeed never enter these.
CREATE INDEX deliveries_stopped ON deliveries (status, created_at) WHERE status = 'failed' OR status = 'held';
CREATE INDEX deliveries_stopped_of_tenant ON deliveries (tenant_id, status, id)
    WHERE status = 'failed' OR status = 'held';
CREATE INDEX deliveries_stopped_of_subscription ON deliveries (tenant_id, subscription_id, status, id)
    WHERE status = 'failed' OR status = 'held';

CREATE TABLE delivery_attempts (
    tenant_id          BLOB    NOT NULL,
    delivery_id        BLOB    NOT NULL,
    attempt            INTEGER NOT NULL,
    started_at         INTEGER NOT NULL,
    duration_ms        INTEGER NOT NULL,
    status             INTEGER NOT NULL,
    error              TEXT,
    -- What ended a failed attempt, for programs.
    cause              TEXT,
    response_body      TEXT,
    response_truncated INTEGER NOT NULL CHECK (response_truncated IN (0, 1)),
    remote_addr        TEXT,
    PRIMARY KEY (delivery_id, attempt, tenant_id),
    FOREIGN KEY (tenant_id, delivery_id) REFERENCES deliveries (tenant_id, id)
) STRICT, WITHOUT ROWID;

-- From when on an endpoint with something to send may be picked: one row each, so that none waits for the backlog of another.
CREATE TABLE endpoint_schedule (
    tenant_id       BLOB    NOT NULL,
    subscription_id BLOB    NOT NULL,
    due_at          INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoint_schedule_by_due_at ON endpoint_schedule (due_at);

CREATE TABLE replays (
    tenant_id       BLOB    NOT NULL,
    id              BLOB    NOT NULL CHECK (length(id) = 16),
    subscription_id BLOB    NOT NULL,
    since           INTEGER NOT NULL,
    until           INTEGER NOT NULL,
    -- Statuses of deliveries separated by spaces.
    statuses        TEXT    NOT NULL,
    missed          INTEGER NOT NULL CHECK (missed IN (0, 1)),
    position        INTEGER NOT NULL,
    replayed        INTEGER NOT NULL CHECK (replayed >= 0),
    created_at      INTEGER NOT NULL,
    finished_at     INTEGER,
    -- Replays take turns: the next step goes to the one that waited longest.
    stepped_at      INTEGER NOT NULL DEFAULT 0,
    -- How much there is to go through, counted when the replay is requested, and how much of that is done.
    total           INTEGER NOT NULL DEFAULT 0 CHECK (total >= 0),
    done            INTEGER NOT NULL DEFAULT 0 CHECK (done >= 0),
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX replays_unfinished ON replays (stepped_at, id) WHERE finished_at IS NULL;

-- How many attempts began in an hour, by endpoint, outcome and duration, for charts; the nil endpoint has the sums of its tenant.
-- The hour comes first, so that what is written meanwhile is side by side, and what has expired too.
CREATE TABLE attempt_counts (
    hour            INTEGER NOT NULL,
    tenant_id       BLOB    NOT NULL,
    subscription_id BLOB    NOT NULL,
    outcome         TEXT    NOT NULL,
    duration_ms     INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    PRIMARY KEY (hour, tenant_id, subscription_id, outcome, duration_ms)
) STRICT, WITHOUT ROWID;

-- What is to become an event of the platform account. The transaction that makes the event deletes the row.
CREATE TABLE operational_events (
    id   BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    kind TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Streams of events to an engine: of the server (its ids are nil) and of subscriptions. A lease lets one process at a time send a
-- stream (svc_core::webhooks::streams). There are no foreign keys: the stream of the server has no tenant.
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

-- People and apps.

-- The people who may sign in to the dashboard of a tenant. Addresses are in lower case.
CREATE TABLE members (
    tenant_id  BLOB    NOT NULL REFERENCES tenants (id),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    email      TEXT    NOT NULL,
    role       TEXT    NOT NULL CHECK (role = 'viewer' OR role = 'developer' OR role = 'owner'),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, email)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_email ON members (email, tenant_id);

-- Secret addresses at which people see one thing of an account. Revoking one deletes it.
CREATE TABLE shared_links (
    id          BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    secret_hash BLOB    NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
    tenant_id   BLOB    NOT NULL REFERENCES tenants (id),
    purpose     TEXT    NOT NULL CHECK (purpose = 'invoice' OR purpose = 'quote' OR purpose = 'calendar'),
    -- The invoice or the quote.
    record_id   BLOB    CHECK (length(record_id) = 16),
    -- Encrypted.
    secret      BLOB    NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX shared_links_of_tenant ON shared_links (tenant_id, purpose, record_id);

-- Files that people upload for an import. They are deleted after a day.
CREATE TABLE uploads (
    tenant_id  BLOB    NOT NULL REFERENCES tenants (id),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    name       TEXT    NOT NULL,
    created_by TEXT    NOT NULL,
    -- Encrypted.
    content    BLOB    NOT NULL,
    choices    TEXT    NOT NULL,
    progress   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX uploads_expired ON uploads (expires_at);

-- Links that sign a person in to the dashboard once. Using one deletes it.
CREATE TABLE dashboard_links (
    token_hash BLOB    NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    id         BLOB    NOT NULL CHECK (length(id) = 16),
    -- NULL for a link of an operator.
    tenant_id  BLOB    REFERENCES tenants (id),
    role       TEXT    NOT NULL CHECK (role = 'viewer' OR role = 'developer' OR role = 'owner'),
    identity   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- The member whom the link signs in, with the role that the member has then.
    member_id  BLOB    CHECK (length(member_id) = 16)
) STRICT, WITHOUT ROWID;
CREATE INDEX dashboard_links_expired ON dashboard_links (expires_at);

-- Who is signed in to the dashboard. Revoking a session deletes it.
CREATE TABLE dashboard_sessions (
    id               BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    token_hash       BLOB    NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    -- NULL for a session of an operator.
    tenant_id        BLOB    REFERENCES tenants (id),
    role             TEXT    NOT NULL CHECK (role = 'viewer' OR role = 'developer' OR role = 'owner'),
    identity         TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    last_used_at     INTEGER NOT NULL,
    -- The tenant that an operator looks at.
    viewed_tenant_id BLOB    REFERENCES tenants (id),
    -- The address of the member whose session it is. NULL for a session that a link began.
    email            TEXT,
    -- The member whom a link signed in.
    member_id        BLOB    CHECK (length(member_id) = 16)
) STRICT, WITHOUT ROWID;
CREATE INDEX dashboard_sessions_of_tenant ON dashboard_sessions (tenant_id, id);
CREATE INDEX dashboard_sessions_expired ON dashboard_sessions (expires_at);

-- Who changed what. Nothing is ever changed or deleted in it, but the log of a sandbox goes with it.
CREATE TABLE audit_log (
    tenant_id   BLOB    NOT NULL REFERENCES tenants (id),
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    at          INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    object_kind TEXT    NOT NULL,
    object_id   BLOB    NOT NULL CHECK (length(object_id) = 16),
    -- JSON without secrets.
    before      TEXT,
    after       TEXT,
    PRIMARY KEY (tenant_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_log_of_object ON audit_log (tenant_id, object_id, id);
CREATE TRIGGER audit_log_is_not_changed BEFORE UPDATE ON audit_log
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_log_is_not_deleted BEFORE DELETE ON audit_log
WHEN (SELECT sandbox_of FROM tenants WHERE id = old.tenant_id) IS NULL
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- Apps of other developers, the accounts that let them work on them, and the codes and tokens with which they do (OAuth 2.0).
CREATE TABLE oauth_apps (
    id             BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    client_id      TEXT    NOT NULL UNIQUE,
    -- The account whose people develop the app. NULL for one of the operator.
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

-- Search: a text for each record, which it is found by, and the time until which all changes are in these (svc_core::find). Both
-- are empty at first; servers fill them, oldest change first.

CREATE TABLE search_progress (
    tenant_id     BLOB    NOT NULL PRIMARY KEY REFERENCES tenants (id),
    indexed_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The places of an account are next to each other: they begin with a number that follows from its id. So a search reads the part
-- of the index that is the account's.
CREATE TABLE search_texts (
    place     INTEGER NOT NULL PRIMARY KEY,
    tenant_id BLOB    NOT NULL REFERENCES tenants (id),
    kind      TEXT    NOT NULL,
    id        BLOB    NOT NULL CHECK (length(id) = 16),
    text      TEXT    NOT NULL,
    UNIQUE (tenant_id, kind, id)
) STRICT;

-- It does not know where in a text a trigram is: a search of a text that has one a thousand times would take seconds.
CREATE VIRTUAL TABLE search_index USING fts5 (
    text, content = 'search_texts', content_rowid = 'place', tokenize = 'trigram case_sensitive 1', columnsize = 0, detail = none
);
-- What is deleted is gone from it at once, and not only hidden until it is merged.
INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER search_texts_added AFTER INSERT ON search_texts BEGIN
    INSERT INTO search_index (rowid, text) VALUES (new.place, new.text);
END;
CREATE TRIGGER search_texts_deleted AFTER DELETE ON search_texts BEGIN
    INSERT INTO search_index (search_index, rowid, text) VALUES ('delete', old.place, old.text);
END;
CREATE TRIGGER search_texts_changed AFTER UPDATE ON search_texts BEGIN
    INSERT INTO search_index (search_index, rowid, text) VALUES ('delete', old.place, old.text);
    INSERT INTO search_index (rowid, text) VALUES (new.place, new.text);
END;

-- What the planner is to believe, since ANALYZE never runs: rows in all, and rows that share the first column, the first two, and
-- so on, as if there were a million rows in 20 tenants. Otherwise a list with a filter would walk all rows of the tenant, because
-- they already come in the right order.
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('tenants', 'tenants_by_overdue_check', '100000 100'),
    ('tenants', 'tenants_sandboxes', '1000 1'),
    ('api_keys', 'api_keys_expiring', '1000 1'),
    ('request_log', 'request_log', '100000 1'),
    ('request_log', 'request_log_of_tenant', '100000 1000 1'),
    ('contacts', 'contacts', '1000000 50000 45000 1'),
    ('contacts', 'contacts_changed', '1000000 50000 45000 1'),
    ('contacts', 'contacts_changed_by_email', '1000000 50000 2 2 1'),
    ('contacts', 'contacts_changed_by_email_and_change', '1000000 50000 2 2 1'),
    ('contacts', 'contacts_unchanged_by_email', '1000000 50000 2 2 1'),
    ('contacts', 'sqlite_autoindex_contacts_2', '1000000 50000 1'),
    ('invoices', 'invoices', '1000000 50000 1'),
    ('invoices', 'invoices_by_due_date', '100000 5000 50 1'),
    ('invoices', 'invoices_by_id', '1000000 2 1'),
    ('invoices', 'invoices_by_status', '1000000 50000 7000 1'),
    ('invoices', 'invoices_by_status_changed', '1000000 50000 7000 1'),
    ('invoices', 'invoices_changed', '1000000 50000 1'),
    ('invoices', 'invoices_of_contact', '1000000 50000 10 1'),
    ('invoices', 'sqlite_autoindex_invoices_2', '1000000 50000 1'),
    ('payments', 'payments', '1000000 50000 1'),
    ('payments', 'payments_of_invoice', '1000000 50000 2 1'),
    ('bookings', 'bookings', '1000000 50000 1'),
    ('bookings', 'bookings_by_start', '1000000 50000 2 1'),
    ('bookings', 'bookings_by_status', '1000000 50000 10000 1'),
    ('bookings', 'bookings_by_status_changed', '1000000 50000 10000 1'),
    ('bookings', 'bookings_changed', '1000000 50000 1'),
    ('bookings', 'bookings_of_contact', '1000000 50000 10 1'),
    ('quotes', 'quotes', '1000000 50000 1'),
    ('quotes', 'quotes_by_id', '1000000 2 1'),
    ('quotes', 'quotes_by_status', '1000000 50000 7000 1'),
    ('quotes', 'quotes_by_status_changed', '1000000 50000 7000 1'),
    ('quotes', 'quotes_changed', '1000000 50000 1'),
    ('quotes', 'quotes_of_contact', '1000000 50000 10 1'),
    ('quotes', 'sqlite_autoindex_quotes_2', '1000000 50000 1'),
    ('jobs', 'jobs', '1000000 50000 1'),
    ('jobs', 'jobs_by_start', '1000000 50000 2 1'),
    ('jobs', 'jobs_by_status', '1000000 50000 7000 1'),
    ('jobs', 'jobs_by_status_changed', '1000000 50000 7000 1'),
    ('jobs', 'jobs_changed', '1000000 50000 1'),
    ('jobs', 'jobs_of_contact', '1000000 50000 10 1'),
    ('jobs', 'sqlite_autoindex_jobs_2', '1000000 50000 1'),
    ('subscriptions', 'subscriptions_by_id', '100000 2 1'),
    ('subscriptions', 'subscriptions_expiring', '10 1'),
    ('subscription_kinds', 'subscription_kinds', '100000 1000 50 1'),
    ('subscription_kinds', 'kinds_of_subscription', '100000 1000 5 1'),
    ('events', 'events_of_record', '1000000 5 5 1'),
    ('deliveries', 'deliveries_by_id', '1000000 2'),
    ('deliveries', 'deliveries_due', '10000 500 50 1'),
    ('deliveries', 'deliveries_ended_of_subscription', '1000000 50000 5000 1'),
    ('deliveries', 'deliveries_ordered', '1000 500 50 2 1'),
    ('deliveries', 'deliveries_pending_of_subscription', '10000 500 50 1'),
    ('deliveries', 'deliveries_stopped', '10000 5000 1'),
    ('deliveries', 'deliveries_stopped_of_subscription', '10000 500 50 25 1'),
    ('deliveries', 'deliveries_stopped_of_tenant', '10000 500 250 1'),
    ('deliveries', 'sqlite_autoindex_deliveries_1', '1000000 50000 1'),
    ('delivery_attempts', 'delivery_attempts', '1500000 2 1 1'),
    ('attempt_counts', 'attempt_counts', '100000 4000 300 12 4 1'),
    ('audit_log', 'audit_log', '100000 5000 1'),
    ('audit_log', 'audit_log_of_object', '100000 5000 5 1');
ANALYZE sqlite_schema;
