-- The tables of SQLite, in PostgreSQL's own types. Ids are UUIDv7 that sort like created_at. Amounts are minor units of the row's
-- currency (of two decimals where a row has none). Secrets are encrypted. Text that is compared or looked up has COLLATE "C": bytes
-- decide, whatever the locale of the database, and lower() knows ASCII only.
--
-- By default a table is vacuumed once a fifth of it is dead. Until then an index keeps the entries of dead rows, and a search for
-- the first row walks over them: what is due next, what expires first. So tables whose rows come, change and go like those of a
-- queue are vacuumed after a number of changes that does not grow with them, or grows slowly where a vacuum reads large indexes.
-- Where no changed column is in an index, half of each page is free: with room on the page, the new version of a row needs no
-- entry in any index, and the old one is removed without a vacuum.

-- Of the database itself: the key that signs cursors, and what its secret key is checked by.
CREATE TABLE settings (
    name  text COLLATE "C" NOT NULL PRIMARY KEY,
    value bytea            NOT NULL
);

CREATE TABLE tenants (
    id                   uuid             NOT NULL PRIMARY KEY,
    name                 text             NOT NULL,
    developer_access     text COLLATE "C" NOT NULL CHECK (developer_access IN ('pending', 'approved', 'suspended')),
    time_zone            text             NOT NULL,
    currency             text             NOT NULL CHECK (length(currency) = 3),
    unique_contact_email boolean          NOT NULL,
    created_at           timestamptz      NOT NULL,
    -- The time of the tenant's last write, in microseconds since 1970: it is counted up.
    clock                bigint           NOT NULL,
    -- What the tenant's keys may do in place of the server's rate limits, such as 'all=600 quotes=5'. NULL when nothing differs.
    limits               text,
    -- How many live webhook subscriptions it may have. NULL for the limit of the server.
    max_webhooks         integer          CHECK (max_webhooks BETWEEN 1 AND 1000),
    -- When its invoices are next checked for due dates that have passed: at the beginning of its next day.
    overdue_check_at     timestamptz      NOT NULL DEFAULT 'epoch',
    -- The account whose sandbox the tenant is, and the sandbox of an account. There is no foreign key, as tenants are copied in
    -- the order of their ids.
    sandbox_of           uuid,
    sandbox_id           uuid,
    -- What invoices and quotes say about the business.
    address              text,
    tax_number           text,
    -- How many days after its issue an invoice is due that names no due date. NULL for none.
    days_until_due       integer CHECK (days_until_due BETWEEN 0 AND 365),
    payment_details      text
)
-- Each write moves the clock.
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX tenants_by_overdue_check ON tenants (overdue_check_at);
-- A search for work that failed leaves out sandboxes, which are few.
CREATE INDEX tenants_sandboxes ON tenants (id) WHERE sandbox_of IS NOT NULL;

-- The last number that was given to an invoice, a quote or a job.
CREATE TABLE numbers (
    tenant_id uuid             NOT NULL REFERENCES tenants (id),
    kind      text COLLATE "C" NOT NULL,
    last      bigint           NOT NULL CHECK (last > 0),
    PRIMARY KEY (tenant_id, kind)
)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Keys, and the requests that are made with them.

CREATE TABLE api_keys (
    key_hash                 bytea       NOT NULL PRIMARY KEY CHECK (length(key_hash) = 32),
    id                       uuid        NOT NULL UNIQUE,
    tenant_id                uuid        NOT NULL REFERENCES tenants (id),
    name                     text,
    can_write                boolean     NOT NULL,
    prefix                   text        NOT NULL,
    signing_secret           bytea,
    created_at               timestamptz NOT NULL,
    expires_at               timestamptz,
    revoked_at               timestamptz,
    last_used_at             timestamptz,
    -- How long the key was made to work, in microseconds. NULL for a key without expiry. A rotation moves the expiry of the old
    -- key to the end of the overlap, and its replacement gets the lifetime.
    lifetime                 bigint,
    -- The latest expiry among the key's used signatures that were deleted. NULL while none was. A signature that expires no later
    -- than this may have been used.
    signatures_deleted_until timestamptz,
    -- Whether it was reported that the key expires.
    expiry_reported          boolean     NOT NULL DEFAULT FALSE
)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id, created_at);
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE revoked_at IS NULL AND expiry_reported = FALSE;

CREATE TABLE used_signatures (
    key_id     uuid        NOT NULL,
    mac        bytea       NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, mac)
)
WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE INDEX used_signatures_expired ON used_signatures (expires_at);

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

-- The responses to requests with an idempotency key. For a request with a platform key, its id takes the place of a tenant's.
CREATE TABLE idempotency (
    tenant_id   uuid             NOT NULL,
    key         text COLLATE "C" NOT NULL,
    fingerprint bytea            NOT NULL CHECK (length(fingerprint) = 32),
    status      integer          NOT NULL,
    location    text,
    etag        text,
    -- Encrypted: the response to a new subscription holds its secret.
    body        bytea            NOT NULL,
    created_at  timestamptz      NOT NULL,
    PRIMARY KEY (tenant_id, key)
)
WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE INDEX idempotency_expired ON idempotency (created_at);

-- Rate limits of all nodes. Counts are worth no write to the log: after a crash windows begin anew.
CREATE UNLOGGED TABLE request_windows (
    subject uuid             NOT NULL,
    bucket  text COLLATE "C" NOT NULL,
    started timestamptz      NOT NULL,
    used    integer          NOT NULL,
    PRIMARY KEY (subject, bucket)
)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The newest API requests of each tenant, without bodies. Its partitions are made at the end.
CREATE TABLE request_log (
    id             uuid        NOT NULL,
    tenant_id      uuid        NOT NULL,
    request_id     text        NOT NULL,
    key_id         uuid        NOT NULL,
    method         text        NOT NULL,
    path           text        NOT NULL,
    query          text,
    status         integer     NOT NULL,
    code           text,
    failing_fields text,
    started_at     timestamptz NOT NULL,
    duration_us    bigint      NOT NULL,
    events         bigint      NOT NULL,
    first_event_id uuid,
    last_event_id  uuid,
    PRIMARY KEY (tenant_id, id)
)
PARTITION BY RANGE (id);

-- Records. Operators name an invoice, a quote, a webhook subscription or a delivery by its id, without its account, so each has an
-- index for that. A hash index has no order, so no plan of a list can take it for the key of the tenant.

-- Live and deleted rows have indexes of their own, so that a list never walks over rows that it leaves out.
CREATE TABLE contacts (
    tenant_id    uuid             NOT NULL REFERENCES tenants (id),
    live         boolean          NOT NULL CHECK (live = (deleted_at IS NULL)),
    id           uuid             NOT NULL,
    email        text COLLATE "C",
    first_name   text,
    last_name    text,
    phone        text,
    company_name text,
    city         text,
    state        text,
    postcode     text,
    created_at   timestamptz      NOT NULL,
    updated_at   timestamptz      NOT NULL,
    deleted_at   timestamptz,
    -- How far the erasure of the contact has come, while one is under way (svc_core::personal::erase).
    erasure      text,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX contacts_live ON contacts (tenant_id, id) WHERE live;
CREATE INDEX contacts_changed ON contacts (tenant_id, updated_at) WHERE live;
CREATE INDEX contacts_deleted ON contacts (tenant_id, id) WHERE NOT live;
CREATE INDEX contacts_deleted_changed ON contacts (tenant_id, updated_at) WHERE NOT live;
-- A contact that was never changed was created and changed at the same time, so one index has such contacts in both orders, and
-- a new contact enters one index by email in place of two.
CREATE INDEX contacts_unchanged_by_email ON contacts (tenant_id, live, lower(email), created_at)
    WHERE updated_at = created_at;
CREATE INDEX contacts_changed_by_email ON contacts (tenant_id, live, lower(email), created_at)
    WHERE updated_at <> created_at;
CREATE INDEX contacts_changed_by_email_and_change ON contacts (tenant_id, live, lower(email), updated_at)
    WHERE updated_at <> created_at;

CREATE TABLE invoices (
    tenant_id      uuid             NOT NULL REFERENCES tenants (id),
    id             uuid             NOT NULL,
    invoice_number text COLLATE "C" NOT NULL,
    contact_id     uuid,
    status         text COLLATE "C" NOT NULL
        CHECK (status IN ('draft', 'sent', 'viewed', 'partial', 'paid', 'overdue', 'cancelled')),
    issue_date     date,
    due_date       date,
    total          bigint           NOT NULL CHECK (total >= 0),
    currency       text             NOT NULL CHECK (length(currency) = 3),
    paid_at        timestamptz,
    created_at     timestamptz      NOT NULL,
    updated_at     timestamptz      NOT NULL,
    amount_paid    bigint           NOT NULL CHECK (amount_paid BETWEEN 0 AND total),
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, invoice_number),
    FOREIGN KEY (tenant_id, contact_id) REFERENCES contacts (tenant_id, id)
);
CREATE INDEX invoices_changed ON invoices (tenant_id, updated_at);
CREATE INDEX invoices_by_status ON invoices (tenant_id, status, id);
CREATE INDEX invoices_by_status_changed ON invoices (tenant_id, status, updated_at);
CREATE INDEX invoices_by_id ON invoices USING hash (id);
CREATE INDEX invoices_by_due_date ON invoices (tenant_id, due_date, id)
    WHERE status <> 'draft' AND status <> 'paid' AND status <> 'cancelled' AND due_date IS NOT NULL;
CREATE INDEX invoices_of_contact ON invoices (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;

CREATE TABLE payments (
    tenant_id  uuid        NOT NULL REFERENCES tenants (id),
    id         uuid        NOT NULL,
    invoice_id uuid        NOT NULL,
    amount     bigint      NOT NULL CHECK (amount >= 0),
    currency   text        NOT NULL CHECK (length(currency) = 3),
    paid_at    timestamptz NOT NULL,
    is_refund  boolean     NOT NULL,
    method     text,
    reference  text,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, invoice_id) REFERENCES invoices (tenant_id, id)
);
CREATE INDEX payments_of_invoice ON payments (tenant_id, invoice_id);

CREATE TABLE bookings (
    tenant_id    uuid        NOT NULL REFERENCES tenants (id),
    id           uuid        NOT NULL,
    contact_id   uuid,
    service_name text,
    start_time   timestamptz NOT NULL,
    end_time     timestamptz NOT NULL CHECK (end_time > start_time),
    status       text        NOT NULL CHECK (status IN ('cancelled', 'confirmed', 'completed', 'no_show')),
    notes        text,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, contact_id) REFERENCES contacts (tenant_id, id)
);
CREATE INDEX bookings_changed ON bookings (tenant_id, updated_at);
CREATE INDEX bookings_by_status ON bookings (tenant_id, status, id);
CREATE INDEX bookings_by_status_changed ON bookings (tenant_id, status, updated_at);
CREATE INDEX bookings_by_start ON bookings (tenant_id, start_time, id);
CREATE INDEX bookings_of_contact ON bookings (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;

CREATE TABLE quotes (
    tenant_id    uuid             NOT NULL REFERENCES tenants (id),
    id           uuid             NOT NULL,
    quote_number text COLLATE "C" NOT NULL,
    contact_id   uuid,
    status       text COLLATE "C" NOT NULL
        CHECK (status IN ('draft', 'sent', 'viewed', 'accepted', 'declined', 'expired', 'converted')),
    issue_date   date,
    valid_until  date,
    total        bigint           NOT NULL CHECK (total >= 0),
    currency     text             NOT NULL CHECK (length(currency) = 3),
    created_at   timestamptz      NOT NULL,
    updated_at   timestamptz      NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, quote_number),
    FOREIGN KEY (tenant_id, contact_id) REFERENCES contacts (tenant_id, id)
);
CREATE INDEX quotes_changed ON quotes (tenant_id, updated_at);
CREATE INDEX quotes_by_status ON quotes (tenant_id, status, id);
CREATE INDEX quotes_by_status_changed ON quotes (tenant_id, status, updated_at);
CREATE INDEX quotes_by_id ON quotes USING hash (id);
CREATE INDEX quotes_of_contact ON quotes (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;

CREATE TABLE jobs (
    tenant_id       uuid             NOT NULL REFERENCES tenants (id),
    id              uuid             NOT NULL,
    job_number      text COLLATE "C" NOT NULL,
    title           text             NOT NULL,
    status          text COLLATE "C" NOT NULL CHECK (
        status IN ('quoted', 'scheduled', 'in_progress', 'on_hold', 'completed', 'invoiced', 'cancelled')
    ),
    job_type        text,
    priority        text,
    contact_id      uuid,
    customer_name   text,
    customer_email  text,
    customer_phone  text,
    site_address    text,
    site_suburb     text,
    site_state      text,
    site_postcode   text,
    scheduled_start timestamptz,
    scheduled_end   timestamptz      CHECK (scheduled_end >= scheduled_start),
    actual_start    timestamptz,
    actual_end      timestamptz,
    estimated_total bigint           CHECK (estimated_total >= 0),
    actual_total    bigint           CHECK (actual_total >= 0),
    quote_id        uuid,
    invoice_id      uuid,
    created_at      timestamptz      NOT NULL,
    updated_at      timestamptz      NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, job_number),
    FOREIGN KEY (tenant_id, contact_id) REFERENCES contacts (tenant_id, id),
    FOREIGN KEY (tenant_id, quote_id) REFERENCES quotes (tenant_id, id),
    FOREIGN KEY (tenant_id, invoice_id) REFERENCES invoices (tenant_id, id)
);
CREATE INDEX jobs_changed ON jobs (tenant_id, updated_at);
CREATE INDEX jobs_by_status ON jobs (tenant_id, status, id);
CREATE INDEX jobs_by_status_changed ON jobs (tenant_id, status, updated_at);
CREATE INDEX jobs_by_start ON jobs (tenant_id, scheduled_start, id) WHERE scheduled_start IS NOT NULL;
CREATE INDEX jobs_of_contact ON jobs (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;

-- Webhooks.

CREATE TABLE subscriptions (
    tenant_id               uuid        NOT NULL REFERENCES tenants (id),
    live                    boolean     NOT NULL CHECK (live = (deleted_at IS NULL)),
    id                      uuid        NOT NULL,
    url                     text        NOT NULL,
    -- Event kinds separated by spaces, or *.
    events                  text        NOT NULL,
    enabled                 boolean     NOT NULL,
    description             text,
    created_at              timestamptz NOT NULL,
    last_delivery_at        timestamptz,
    last_delivery_status    integer,
    disabled_reason         text        CHECK (disabled_reason IN ('auto_paused')),
    paused_at               timestamptz,
    consecutive_failures    bigint      NOT NULL,
    -- Encrypted, like its predecessor, which signs beside it until then.
    secret                  bytea       NOT NULL,
    previous_secret         bytea,
    previous_until          timestamptz CHECK ((previous_until IS NULL) = (previous_secret IS NULL)),
    updated_at              timestamptz NOT NULL,
    deleted_at              timestamptz,
    -- While the endpoint gets one attempt at a time, after a failure: the time from which the next one can be made.
    backoff_until           timestamptz,
    -- When it last stopped sending, as long as deliveries that were pending then are still to be held or ended.
    stopped_at              timestamptz,
    -- How many attempts of the day have kept the bodies of their responses, and the delivery up to which they were deleted.
    responses_kept          bigint      NOT NULL DEFAULT 0,
    responses_deleted_until uuid,
    -- When a subscription that a program made for as long as it runs is deleted, unless the program still runs.
    expires_at              timestamptz,
    -- The grant of the app that it belongs to. NULL for one of the account itself.
    grant_id                uuid,
    -- What it asks for beyond the contract (svc_core::webhooks::options). Headers, authentication, keys, certificates and the URL
    -- of a stream are encrypted.
    headers                 bytea,
    authentication          bytea,
    filter                  text COLLATE "C",
    payload                 text COLLATE "C",
    max_per_second          integer,
    max_in_flight           integer,
    timeout                 integer,
    retry_schedule          text COLLATE "C",
    ordering                text COLLATE "C",
    paced_until             timestamptz,
    signature               text COLLATE "C",
    signing_keys            bytea,
    client_certificate      bytea,
    certificate_authority   bytea,
    -- Where its events go in place of deliveries.
    stream_url              bytea,
    PRIMARY KEY (tenant_id, id)
)
-- Each outcome of a delivery changes its row.
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX subscriptions_live ON subscriptions (tenant_id, id) WHERE live;
CREATE INDEX subscriptions_changed ON subscriptions (tenant_id, updated_at) WHERE live;
CREATE INDEX subscriptions_by_id ON subscriptions USING hash (id);
CREATE INDEX subscriptions_expiring ON subscriptions (expires_at) WHERE live = TRUE AND expires_at IS NOT NULL;

-- Which live, enabled or auto-paused subscriptions want which kind (or *): what a write looks up.
CREATE TABLE subscription_kinds (
    tenant_id       uuid             NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    subscription_id uuid             NOT NULL,
    paused          boolean          NOT NULL,
    filter          text COLLATE "C",
    is_ordered      boolean          NOT NULL DEFAULT FALSE,
    PRIMARY KEY (tenant_id, kind, subscription_id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
);
CREATE INDEX kinds_of_subscription ON subscription_kinds (tenant_id, subscription_id);

-- What happened is in partitions by the time that its ids were made for, which are made at the end: what is older than the retention
-- is dropped with its partition. A row has no foreign key to or from these tables, which a partition could not be dropped with. svc
-- writes the rows of an event in one transaction, and `svc db check` finds a row whose other row is missing.

CREATE TABLE events (
    tenant_id  uuid        NOT NULL,
    id         uuid        NOT NULL,
    kind       text        NOT NULL,
    -- json, never jsonb: this text is what is signed, so every retry must find it byte by byte as it was written.
    data       json        NOT NULL,
    created_at timestamptz NOT NULL,
    -- The one subscription that it is meant for, such as a test of it. NULL for all that want its kind.
    only_for   uuid,
    -- Who caused it, for the log of changes.
    actor      text,
    -- The record in whose history it belongs: the one that it tells of, or the invoice of a payment. NULL for a test, and for
    -- records that svc does not store.
    record_id  uuid,
    PRIMARY KEY (tenant_id, id)
)
PARTITION BY RANGE (id);
-- Ids of records sort like the times at which they were made, so the events of new records of all tenants go to the end.
CREATE INDEX events_of_record ON events (record_id, tenant_id, id) WHERE record_id IS NOT NULL;

-- The id of a delivery is made for the time of its event, so the deliveries of an event are a span of ids.
CREATE TABLE deliveries (
    tenant_id       uuid             NOT NULL,
    id              uuid             NOT NULL,
    event_id        uuid             NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    subscription_id uuid             NOT NULL,
    status          text COLLATE "C" NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed', 'held')),
    attempts        bigint           NOT NULL CHECK (attempts >= 0),
    failures        bigint           NOT NULL CHECK (failures BETWEEN 0 AND attempts),
    last_status     integer,
    -- When the next attempt is due; while one is being made, when its lease ends.
    next_attempt_at timestamptz      CHECK ((next_attempt_at IS NOT NULL) = (status = 'pending')),
    lease           uuid,
    created_at      timestamptz      NOT NULL,
    -- Why it failed, if it was not for the outcome of its last attempt.
    failure_reason  text,
    -- What the deliveries that wait for each other have in common, which only subscriptions have that ask for an order.
    order_key       uuid,
    PRIMARY KEY (tenant_id, id)
)
PARTITION BY RANGE (id);
CREATE INDEX deliveries_due ON deliveries (tenant_id, subscription_id, next_attempt_at) WHERE status = 'pending';
CREATE INDEX deliveries_ordered ON deliveries (tenant_id, subscription_id, order_key, id)
    WHERE order_key IS NOT NULL AND next_attempt_at IS NOT NULL;
CREATE INDEX deliveries_by_id ON deliveries USING hash (id);
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
    tenant_id          uuid        NOT NULL,
    delivery_id        uuid        NOT NULL,
    attempt            bigint      NOT NULL,
    started_at         timestamptz NOT NULL,
    duration_ms        bigint      NOT NULL,
    status             integer     NOT NULL,
    error              text,
    -- What ended a failed attempt, for programs.
    cause              text,
    -- Text as bytes: it is a stranger's and may hold the one character that PostgreSQL's text cannot, NUL.
    response_body      bytea,
    response_truncated boolean     NOT NULL,
    remote_addr        text,
    PRIMARY KEY (tenant_id, delivery_id, attempt)
)
PARTITION BY RANGE (delivery_id);

-- From when on an endpoint with something to send may be picked: one row each, so that none waits for the backlog of another.
CREATE TABLE endpoint_schedule (
    tenant_id       uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    due_at          timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id)
)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX endpoint_schedule_by_due_at ON endpoint_schedule (due_at);

CREATE TABLE replays (
    tenant_id       uuid        NOT NULL,
    id              uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    since           timestamptz NOT NULL,
    until           timestamptz NOT NULL,
    -- Statuses of deliveries separated by spaces.
    statuses        text        NOT NULL,
    missed          boolean     NOT NULL,
    position        timestamptz NOT NULL,
    -- Replays take turns: the next step goes to the one that waited longest.
    stepped_at      timestamptz NOT NULL,
    replayed        bigint      NOT NULL CHECK (replayed >= 0),
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    -- How much there is to go through, counted when the replay is requested, and how much of that is done.
    total           bigint      NOT NULL DEFAULT 0 CHECK (total >= 0),
    done            bigint      NOT NULL DEFAULT 0 CHECK (done >= 0),
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
)
WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX replays_unfinished ON replays (stepped_at, id) WHERE finished_at IS NULL;

-- How many attempts began in an hour, by endpoint, outcome and duration, for charts; the nil endpoint has the sums of its tenant.
-- The hour comes first, so that what is written meanwhile is side by side, and what has expired too.
CREATE TABLE attempt_counts (
    hour            timestamptz      NOT NULL,
    tenant_id       uuid             NOT NULL,
    subscription_id uuid             NOT NULL,
    outcome         text COLLATE "C" NOT NULL,
    duration_ms     bigint           NOT NULL,
    attempts        bigint           NOT NULL,
    PRIMARY KEY (hour, tenant_id, subscription_id, outcome, duration_ms)
);

-- What is to become an event of the platform account. The transaction that makes the event deletes the row.
CREATE TABLE operational_events (
    id   uuid NOT NULL PRIMARY KEY,
    kind text NOT NULL,
    data json NOT NULL
);

-- Streams of events to an engine: of the server (its ids are nil) and of subscriptions. A lease lets one process at a time send a
-- stream (svc_core::webhooks::streams). There are no foreign keys: the stream of the server has no tenant, and no position of a
-- stream waits for the lock of its tenant. All times are in microseconds since 1970, as the clock of the account that they are
-- compared with.
CREATE TABLE streams (
    tenant_id     uuid   NOT NULL,
    id            uuid   NOT NULL,
    begins_at     bigint NOT NULL,
    lease         uuid,
    lease_ends_at bigint,
    PRIMARY KEY (tenant_id, id)
);

-- Until when the events of an account were sent.
CREATE TABLE stream_positions (
    tenant_id  uuid   NOT NULL,
    stream_id  uuid   NOT NULL,
    sent_until bigint NOT NULL,
    PRIMARY KEY (tenant_id, stream_id)
);

-- People and apps.

-- The people who may sign in to the dashboard of a tenant. Addresses are in lower case.
CREATE TABLE members (
    tenant_id  uuid             NOT NULL REFERENCES tenants (id),
    id         uuid             NOT NULL,
    email      text COLLATE "C" NOT NULL,
    role       text             NOT NULL CHECK (role IN ('viewer', 'developer', 'owner')),
    created_at timestamptz      NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, email)
);
CREATE INDEX members_by_email ON members (email, tenant_id);

-- Secret addresses at which people see one thing of an account. Revoking one deletes it.
CREATE TABLE shared_links (
    id          uuid             NOT NULL PRIMARY KEY,
    secret_hash bytea            NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
    tenant_id   uuid             NOT NULL REFERENCES tenants (id),
    purpose     text COLLATE "C" NOT NULL CHECK (purpose IN ('invoice', 'quote', 'calendar')),
    -- The invoice or the quote.
    record_id   uuid,
    -- Encrypted.
    secret      bytea            NOT NULL,
    created_at  timestamptz      NOT NULL
);
CREATE INDEX shared_links_of_tenant ON shared_links (tenant_id, purpose, record_id);

-- Files that people upload for an import. They are deleted after a day.
CREATE TABLE uploads (
    tenant_id  uuid        NOT NULL REFERENCES tenants (id),
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    created_by text        NOT NULL,
    -- Encrypted.
    content    bytea       NOT NULL,
    choices    text        NOT NULL,
    progress   text        NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX uploads_expired ON uploads (expires_at);

-- Links that sign a person in to the dashboard once. Using one deletes it.
CREATE TABLE dashboard_links (
    token_hash bytea       NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    id         uuid        NOT NULL,
    -- NULL for a link of an operator.
    tenant_id  uuid        REFERENCES tenants (id),
    role       text        NOT NULL CHECK (role IN ('viewer', 'developer', 'owner')),
    identity   text        NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    -- The member whom the link signs in, with the role that the member has then.
    member_id  uuid
);
CREATE INDEX dashboard_links_expired ON dashboard_links (expires_at);

-- Who is signed in to the dashboard. Revoking a session deletes it.
CREATE TABLE dashboard_sessions (
    id               uuid        NOT NULL PRIMARY KEY,
    token_hash       bytea       NOT NULL UNIQUE CHECK (length(token_hash) = 32),
    -- NULL for a session of an operator.
    tenant_id        uuid        REFERENCES tenants (id),
    role             text        NOT NULL CHECK (role IN ('viewer', 'developer', 'owner')),
    identity         text        NOT NULL,
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    last_used_at     timestamptz NOT NULL,
    -- The tenant that an operator looks at.
    viewed_tenant_id uuid        REFERENCES tenants (id),
    -- The address of the member whose session it is. NULL for a session that a link began.
    email            text,
    -- The member whom a link signed in.
    member_id        uuid
);
CREATE INDEX dashboard_sessions_of_tenant ON dashboard_sessions (tenant_id, id);
CREATE INDEX dashboard_sessions_expired ON dashboard_sessions (expires_at);

-- Who changed what. Nothing is ever changed or deleted in it, but the log of a sandbox goes with it. Its partitions are made at
-- the end.
CREATE TABLE audit_log (
    tenant_id   uuid        NOT NULL,
    id          uuid        NOT NULL,
    at          timestamptz NOT NULL,
    actor       text        NOT NULL,
    action      text        NOT NULL,
    object_kind text        NOT NULL,
    object_id   uuid        NOT NULL,
    -- Without secrets.
    before      json,
    after       json,
    PRIMARY KEY (tenant_id, id)
)
PARTITION BY RANGE (id);
CREATE INDEX audit_log_of_object ON audit_log (tenant_id, object_id, id);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$;
CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE FUNCTION refuse_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT sandbox_of FROM tenants WHERE id = OLD.tenant_id) IS NULL THEN
        RAISE EXCEPTION 'the audit log is append-only';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER audit_log_is_not_deleted BEFORE DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_deletion();

-- Apps of other developers, the accounts that let them work on them, and the codes and tokens with which they do (OAuth 2.0).
CREATE TABLE oauth_apps (
    id             uuid             NOT NULL PRIMARY KEY,
    client_id      text COLLATE "C" NOT NULL UNIQUE,
    -- The account whose people develop the app. NULL for one of the operator.
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

-- Search: a text for each record, which it is found by, and the time until which all changes are in these (svc_core::find). Both
-- are empty at first; servers fill them, oldest change first.

CREATE TABLE search_progress (
    tenant_id     uuid   NOT NULL PRIMARY KEY REFERENCES tenants (id),
    -- In microseconds since 1970, as the clock of the account that it is compared with.
    indexed_until bigint NOT NULL
);

CREATE TABLE search_texts (
    place     bigint           NOT NULL,
    tenant_id uuid             NOT NULL REFERENCES tenants (id),
    kind      text COLLATE "C" NOT NULL,
    id        uuid             NOT NULL,
    text      text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
);
CREATE INDEX search_texts_by_place ON search_texts (tenant_id, place);
-- The records of a whole title, those that entered the index last first. The text of a record begins with the line of its title;
-- the index of trigrams would find each that has these words anywhere.
CREATE INDEX search_texts_by_title ON search_texts (tenant_id, left(split_part(text, E'\n', 1), 200), place);

-- Without these extensions, or without the right to create them, a search for a rare text reads all texts of the account. Searches
-- read all that was added to the index since it was last tidied up: 256 kB at most, in place of 4 MB.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE EXTENSION IF NOT EXISTS btree_gin;
    CREATE INDEX search_texts_by_text ON search_texts USING gin (tenant_id, text gin_trgm_ops)
        WITH (gin_pending_list_limit = 256);
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'searches read all texts of an account: %', SQLERRM;
END
$$;

-- Partitions of what happened. `_kept` has everything before a time: the rows of the first days, and later those that are older than
-- the retention and not finished. `_ahead` has no end, for accounts whose clock is ahead; it is empty otherwise. Those between are
-- named after the day on which they begin. They are made and dropped in steps, each for one table in a transaction of its own. What
-- takes long, as on Citus, is made beside the table without a lock; the lock of a table is held for the exchange alone.

-- The smallest id of a time, and the time of such an id.
CREATE FUNCTION partition_bound(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
CREATE FUNCTION partition_time(bound uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT to_timestamp(('x0000' || left(replace(bound::text, '-', ''), 12))::bit(64)::bigint / 1000.0)
$$;

-- The partitions of a table, the oldest first: NULL where one has no beginning or no end.
CREATE FUNCTION partitions_of(parent text)
RETURNS TABLE (name text, begins timestamptz, ends timestamptz) LANGUAGE sql STABLE AS $$
    SELECT c.relname::text,
        partition_time(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \(''([0-9a-f-]{36})''\)')::uuid),
        partition_time(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([0-9a-f-]{36})''\)')::uuid)
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass(parent)
    ORDER BY 2 NULLS FIRST
$$;

-- Makes a table that can become a partition, with the storage settings of another one.
CREATE FUNCTION create_partition(parent text, name text, settings_of text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    settings CONSTANT text := (SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = to_regclass(settings_of));
    definition text;
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', name, parent);
    IF settings IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %I SET (%s)', name, settings);
    END IF;
    -- Triggers of statements are not inherited; those of rows are.
    FOR definition IN
        SELECT replace(pg_get_triggerdef(oid), format(' ON %I.%I ', current_schema(), parent), format(' ON %I ', name))
        FROM pg_trigger WHERE tgrelid = to_regclass(parent) AND NOT tgisinternal AND tgtype & 1 = 0
    LOOP
        EXECUTE definition;
    END LOOP;
END $$;

CREATE FUNCTION attach_partition(parent text, name text, begins timestamptz, ends timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent, name,
        coalesce(quote_literal(partition_bound(begins)), 'MINVALUE'), coalesce(quote_literal(partition_bound(ends)), 'MAXVALUE')
    );
END $$;

-- The next table that needs a partition, and from when to when: if there is none until two lengths after a time, or until
-- `ahead` after it. Deliveries and attempts have the partitions of events.
CREATE FUNCTION due_partition(
    at timestamptz, days bigint, ahead interval,
    OUT parent text, OUT key text, OUT begins timestamptz, OUT ends timestamptz
) LANGUAGE plpgsql STABLE AS $$
DECLARE
    t record;
    length interval;
    first CONSTANT timestamptz := (SELECT p.begins FROM partitions_of('events') p WHERE p.name = 'events_ahead');
BEGIN
    FOR t IN SELECT * FROM (VALUES
        ('events', 'id', days), ('deliveries', 'id', days), ('delivery_attempts', 'delivery_id', days),
        ('request_log', 'id', 1), ('audit_log', 'id', 30)) AS tables (parent, key, days)
    LOOP
        length := make_interval(hours => t.days::integer * 24);
        begins := (SELECT p.begins FROM partitions_of(t.parent) p WHERE p.name = t.parent || '_ahead');
        -- It has all that was written since the last one ended.
        ends := begins + length * greatest(1, ceil(extract(epoch FROM at - begins) / extract(epoch FROM length)));
        IF t.parent IN ('deliveries', 'delivery_attempts') THEN
            ends := coalesce((SELECT p.ends FROM partitions_of('events') p WHERE p.begins = due_partition.begins), ends);
            CONTINUE WHEN begins >= first;
        ELSE
            CONTINUE WHEN begins >= at + greatest(2 * length, ahead);
        END IF;
        parent := t.parent;
        key := t.key;
        RETURN;
    END LOOP;
    begins := NULL;
    ends := NULL;
END $$;

-- Returns whether a table is distributed by Citus.
CREATE FUNCTION is_distributed(name text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_it boolean := false;
BEGIN
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass($1))' INTO found_it USING name;
    END IF;
    RETURN found_it;
END $$;

-- Makes the table that the next partition is made of, which is called `_next` until then. It locks no table that others write
-- to. Returns whether it made one.
CREATE FUNCTION prepare_partition(at timestamptz, days bigint, ahead interval) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    parent CONSTANT text := (SELECT d.parent FROM due_partition(at, days, ahead) d);
    next CONSTANT text := parent || '_next';
    is_usable boolean;
BEGIN
    IF parent IS NULL OR NOT pg_try_advisory_xact_lock(7310004117) THEN
        RETURN false;
    END IF;
    IF to_regclass(next) IS NOT NULL THEN
        -- One that was left behind may be older than a column of its table, or than its distribution.
        SELECT is_distributed(parent) = is_distributed(next) AND NOT EXISTS (
            SELECT attname, atttypid FROM pg_attribute
            WHERE attrelid = to_regclass(parent) AND attnum > 0 AND NOT attisdropped
            EXCEPT
            SELECT attname, atttypid FROM pg_attribute
            WHERE attrelid = to_regclass(next) AND attnum > 0 AND NOT attisdropped
        ) INTO is_usable;
        IF is_usable THEN
            RETURN false;
        END IF;
        EXECUTE format('DROP TABLE %I', next);
    END IF;
    PERFORM create_partition(parent, next, parent || '_ahead');
    IF is_distributed(parent) THEN
        EXECUTE format('SELECT create_distributed_table(%L, ''tenant_id'', colocate_with => %L)', next, parent);
    END IF;
    RETURN true;
END $$;

-- Makes the table that was prepared a partition. Rows that are ahead of it stay in the last partition.
CREATE FUNCTION exchange_partition(at timestamptz, days bigint, ahead interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t record;
    last text;
    next text;
    made text;
    has_rows boolean;
BEGIN
    SELECT * FROM due_partition(at, days, ahead) INTO t;
    last := t.parent || '_ahead';
    next := t.parent || '_next';
    made := t.parent || '_' || to_char(t.begins AT TIME ZONE 'UTC', 'YYYYMMDD');
    IF t.parent IS NULL OR to_regclass(next) IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', t.parent);
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', t.parent, last);
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I WHERE %I < %L)', last, t.key, partition_bound(t.ends)) INTO has_rows;
    IF has_rows THEN
        EXECUTE format('ALTER TABLE %I RENAME TO %I', last, made);
        EXECUTE format('ALTER TABLE %I RENAME TO %I', next, last);
        EXECUTE format('INSERT INTO %I SELECT * FROM %I WHERE %I >= %L', last, made, t.key, partition_bound(t.ends));
        EXECUTE format('DELETE FROM %I WHERE %I >= %L', made, t.key, partition_bound(t.ends));
    ELSE
        EXECUTE format('ALTER TABLE %I RENAME TO %I', next, made);
    END IF;
    PERFORM attach_partition(t.parent, made, t.begins, t.ends);
    PERFORM attach_partition(t.parent, last, t.ends, NULL);
    RETURN true;
END $$;

-- Drops the first partition of one table that ends before its time, attempts before their deliveries and these before their
-- events. What belongs to a pending delivery is moved to the partition `_kept`. Returns the name of the table.
CREATE FUNCTION expire_partition(at timestamptz, before timestamptz) RETURNS text LANGUAGE plpgsql
-- Few rows are looked for in large tables, each by its key.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t record;
    first timestamptz;
    ending timestamptz;
    expired text;
    rows_to_keep text;
BEGIN
    FOR t IN SELECT * FROM (VALUES
        ('delivery_attempts', before), ('deliveries', before), ('events', before), ('request_log', at - interval '24 hours')
    ) AS tables (parent, before)
    LOOP
        -- That of `_kept` is NULL. The last one has no end.
        first := (SELECT min(p.begins) FROM partitions_of(t.parent) p);
        ending := (SELECT p.ends FROM partitions_of(t.parent) p WHERE p.begins = first);
        CONTINUE WHEN ending IS NULL OR ending > t.before;
        expired := (SELECT p.name FROM partitions_of(t.parent) p WHERE p.begins = first);
        rows_to_keep := CASE t.parent
            WHEN 'delivery_attempts' THEN
                'SELECT a.* FROM (SELECT tenant_id, id FROM deliveries '
                'WHERE id >= %2$L AND id < %3$L AND next_attempt_at IS NOT NULL) AS k '
                'JOIN %1$I AS a ON a.tenant_id = k.tenant_id AND a.delivery_id = k.id'
            WHEN 'deliveries' THEN
                'SELECT d.* FROM (SELECT tenant_id, id FROM %1$I WHERE next_attempt_at IS NOT NULL '
                'UNION SELECT tenant_id, delivery_id FROM delivery_attempts WHERE delivery_id >= %2$L AND delivery_id < %3$L) AS k '
                'JOIN %1$I AS d ON d.tenant_id = k.tenant_id AND d.id = k.id'
            WHEN 'events' THEN
                'SELECT e.* FROM (SELECT DISTINCT tenant_id, event_id FROM deliveries WHERE id >= %2$L AND id < %3$L) AS k '
                'JOIN %1$I AS e ON e.tenant_id = k.tenant_id AND e.id = k.event_id'
        END;
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', t.parent);
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', t.parent, t.parent || '_kept');
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', t.parent, expired);
        IF rows_to_keep IS NOT NULL THEN
            EXECUTE format('INSERT INTO %I ', t.parent || '_kept')
                || format(rows_to_keep, expired, partition_bound(first), partition_bound(ending));
        END IF;
        PERFORM attach_partition(t.parent, t.parent || '_kept', NULL, ending);
        EXECUTE format('DROP TABLE %I', expired);
        RETURN t.parent;
    END LOOP;
    RETURN NULL;
END $$;

-- Does one step: makes the table that was prepared a partition, or drops the first partition of one table that has expired.
-- `first` is when the first partition of events begins that is to be dropped as a whole, `until` is when the first partition
-- begins that has no end, and `done` says for which table something was done. While somebody reads the table for long, such as a
-- backup, or when the statement takes longer than its time, nothing is done, and `blocked` says why.
CREATE FUNCTION step_partitions(
    at timestamptz, before timestamptz, days bigint, ahead interval,
    OUT first timestamptz, OUT until timestamptz, OUT done text, OUT blocked text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    -- One node does it, and others go on.
    IF pg_try_advisory_xact_lock(7310004117) THEN
        SET LOCAL lock_timeout = '200ms';
        BEGIN
            IF exchange_partition(at, days, ahead) THEN
                done := 'made';
            ELSE
                done := expire_partition(at, before);
            END IF;
        EXCEPTION
            WHEN lock_not_available THEN
                blocked := 'lock';
            WHEN query_canceled THEN
                blocked := 'time';
        END;
    END IF;
    first := (SELECT min(begins) FROM partitions_of('events'));
    until := (
        SELECT min(p.begins) FROM (VALUES ('events'), ('deliveries'), ('delivery_attempts'), ('request_log'), ('audit_log')) AS t (name),
            partitions_of(t.name) AS p WHERE p.name = t.name || '_ahead'
    );
END $$;

-- They drop what their caller names, so the owner of the tables says who else may call them.
REVOKE ALL ON FUNCTION prepare_partition, step_partitions FROM PUBLIC;

-- The first and the last partition of each table. The first one ends at the next midnight but one.
DO $$
DECLARE
    t record;
    ends CONSTANT timestamptz := date_trunc('day', now(), 'UTC') + interval '48 hours';
BEGIN
    -- A delivery is claimed, and then it has its outcome: two dead versions of each row, on whose entries in deliveries_due every
    -- search for what is due begins. Pages stay full, since both changes are of indexed columns: each new version needs new entries
    -- wherever it is, and the room would be lost for as long as finished deliveries are kept.
    FOR t IN SELECT * FROM (VALUES
        ('events', '0.02'), ('deliveries', '0.01'), ('delivery_attempts', '0.02'), ('request_log', NULL), ('audit_log', NULL)
    ) AS tables (name, vacuum_after)
    LOOP
        PERFORM create_partition(t.name, t.name || '_kept', NULL);
        IF t.vacuum_after IS NOT NULL THEN
            EXECUTE format(
                'ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = %s, autovacuum_vacuum_threshold = 10000)',
                t.name || '_kept', t.vacuum_after
            );
        END IF;
        PERFORM create_partition(t.name, t.name || '_ahead', t.name || '_kept');
        PERFORM attach_partition(t.name, t.name || '_kept', NULL, ends);
        PERFORM attach_partition(t.name, t.name || '_ahead', ends, NULL);
    END LOOP;
END $$;
