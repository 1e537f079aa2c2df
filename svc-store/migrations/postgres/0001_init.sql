-- The same tables as on SQLite, in PostgreSQL's own types. Ids are UUIDv7 that sort like created_at. Amounts are minor
-- units of the row's currency (of two decimals where a row has none). Secrets are sealed bytes. Text that is compared
-- or looked up has COLLATE "C": bytes decide, whatever the locale of the database, and lower() knows ASCII only.

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
    -- The last time that a write of this tenant took, in microseconds since 1970: it is counted up.
    clock                bigint           NOT NULL
)
-- Each write moves the clock: room for the new version of the row on the same page.
WITH (fillfactor = 50);

CREATE TABLE numbers (
    tenant_id uuid             NOT NULL REFERENCES tenants (id),
    kind      text COLLATE "C" NOT NULL,
    last      bigint           NOT NULL CHECK (last > 0),
    PRIMARY KEY (tenant_id, kind)
)
WITH (fillfactor = 50);

CREATE TABLE api_keys (
    key_hash       bytea       NOT NULL PRIMARY KEY CHECK (length(key_hash) = 32),
    id             uuid        NOT NULL UNIQUE,
    tenant_id      uuid        NOT NULL REFERENCES tenants (id),
    name           text,
    can_write      boolean     NOT NULL,
    prefix         text        NOT NULL,
    signing_secret bytea,
    created_at     timestamptz NOT NULL,
    expires_at     timestamptz,
    revoked_at     timestamptz,
    last_used_at   timestamptz
);
CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id, created_at);

CREATE TABLE used_signatures (
    key_id     uuid        NOT NULL,
    mac        bytea       NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, mac)
);
CREATE INDEX used_signatures_expired ON used_signatures (expires_at);

CREATE TABLE idempotency (
    tenant_id   uuid             NOT NULL REFERENCES tenants (id),
    key         text COLLATE "C" NOT NULL,
    fingerprint bytea            NOT NULL CHECK (length(fingerprint) = 32),
    status      integer          NOT NULL,
    location    text,
    etag        text,
    -- Sealed: the answer to a new subscription holds its secret.
    body        bytea            NOT NULL,
    created_at  timestamptz      NOT NULL,
    PRIMARY KEY (tenant_id, key)
);
CREATE INDEX idempotency_expired ON idempotency (created_at);

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
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX contacts_live ON contacts (tenant_id, id) WHERE live;
CREATE INDEX contacts_changed ON contacts (tenant_id, updated_at) WHERE live;
CREATE INDEX contacts_by_email ON contacts (tenant_id, lower(email), id) WHERE live;
CREATE INDEX contacts_by_email_changed ON contacts (tenant_id, lower(email), updated_at) WHERE live;
CREATE INDEX contacts_deleted ON contacts (tenant_id, id) WHERE NOT live;
CREATE INDEX contacts_deleted_changed ON contacts (tenant_id, updated_at) WHERE NOT live;
CREATE INDEX contacts_deleted_by_email ON contacts (tenant_id, lower(email), id) WHERE NOT live;
CREATE INDEX contacts_deleted_by_email_changed ON contacts (tenant_id, lower(email), updated_at) WHERE NOT live;

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

CREATE TABLE payments (
    tenant_id  uuid        NOT NULL REFERENCES tenants (id),
    id         uuid        NOT NULL,
    invoice_id uuid        NOT NULL,
    amount     bigint      NOT NULL CHECK (amount >= 0),
    currency   text        NOT NULL CHECK (length(currency) = 3),
    paid_at    timestamptz NOT NULL,
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
    scheduled_end   timestamptz CHECK (scheduled_end >= scheduled_start),
    actual_start    timestamptz,
    actual_end      timestamptz,
    estimated_total bigint CHECK (estimated_total >= 0),
    actual_total    bigint CHECK (actual_total >= 0),
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

CREATE TABLE subscriptions (
    tenant_id            uuid        NOT NULL REFERENCES tenants (id),
    live                 boolean     NOT NULL CHECK (live = (deleted_at IS NULL)),
    id                   uuid        NOT NULL,
    url                  text        NOT NULL,
    -- Event kinds separated by spaces, or *.
    events               text        NOT NULL,
    enabled              boolean     NOT NULL,
    description          text,
    created_at           timestamptz NOT NULL,
    last_delivery_at     timestamptz,
    last_delivery_status integer,
    disabled_reason      text CHECK (disabled_reason IN ('auto_paused')),
    paused_at            timestamptz,
    consecutive_failures bigint      NOT NULL,
    -- Sealed, like its predecessor, which signs beside it until then.
    secret               bytea       NOT NULL,
    previous_secret      bytea,
    previous_until       timestamptz CHECK ((previous_until IS NULL) = (previous_secret IS NULL)),
    updated_at           timestamptz NOT NULL,
    deleted_at           timestamptz,
    PRIMARY KEY (tenant_id, id)
)
WITH (fillfactor = 50);
CREATE INDEX subscriptions_live ON subscriptions (tenant_id, id) WHERE live;
CREATE INDEX subscriptions_changed ON subscriptions (tenant_id, updated_at) WHERE live;

-- Which live, enabled or auto-paused subscriptions want which kind (or *): what a write looks up.
CREATE TABLE subscription_kinds (
    tenant_id       uuid             NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    subscription_id uuid             NOT NULL,
    paused          boolean          NOT NULL,
    PRIMARY KEY (tenant_id, kind, subscription_id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
);
CREATE INDEX kinds_of_subscription ON subscription_kinds (tenant_id, subscription_id);

CREATE TABLE events (
    tenant_id  uuid        NOT NULL REFERENCES tenants (id),
    id         uuid        NOT NULL,
    kind       text        NOT NULL,
    -- json, never jsonb: this text is what is signed, so every retry must find it byte by byte as it was written.
    data       json        NOT NULL,
    created_at timestamptz NOT NULL,
    -- The one subscription that it is meant for, such as a test of it; NULL for all that want its kind.
    only_for   uuid,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE deliveries (
    tenant_id       uuid             NOT NULL,
    id              uuid             NOT NULL,
    event_id        uuid             NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    subscription_id uuid             NOT NULL,
    state           text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed', 'held')),
    attempts        bigint           NOT NULL CHECK (attempts >= 0),
    failures        bigint           NOT NULL CHECK (failures BETWEEN 0 AND attempts),
    last_status     integer,
    -- When the next attempt is due; while one is being made, when its lease ends.
    next_attempt_at timestamptz CHECK ((next_attempt_at IS NOT NULL) = (state = 'pending')),
    lease           uuid,
    created_at      timestamptz      NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, event_id) REFERENCES events (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
);
CREATE INDEX deliveries_due ON deliveries (tenant_id, subscription_id, next_attempt_at) WHERE state = 'pending';
CREATE INDEX deliveries_of_subscription ON deliveries (tenant_id, subscription_id, id);
CREATE INDEX deliveries_of_event ON deliveries (tenant_id, event_id);

CREATE TABLE delivery_attempts (
    tenant_id          uuid        NOT NULL,
    delivery_id        uuid        NOT NULL,
    attempt            bigint      NOT NULL,
    started_at         timestamptz NOT NULL,
    duration_ms        bigint      NOT NULL,
    status             integer     NOT NULL,
    error              text,
    -- Text as bytes: it is a stranger's and may hold the one character that PostgreSQL's text cannot, NUL.
    response_body      bytea,
    response_truncated boolean     NOT NULL,
    remote_addr        text,
    PRIMARY KEY (tenant_id, delivery_id, attempt),
    FOREIGN KEY (tenant_id, delivery_id) REFERENCES deliveries (tenant_id, id)
);

-- From when on an endpoint with something to send may be picked: one row each, so that none waits for the backlog
-- of another.
CREATE TABLE turns (
    tenant_id       uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    at              timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id)
)
-- Few rows, changed all the time: dead versions go soon, or "the first turn" would walk over them.
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX turns_by_time ON turns (at);

CREATE TABLE replays (
    tenant_id       uuid        NOT NULL,
    id              uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    since           timestamptz NOT NULL,
    until           timestamptz NOT NULL,
    -- Delivery states separated by spaces.
    statuses        text        NOT NULL,
    missed          boolean     NOT NULL,
    position        timestamptz NOT NULL,
    -- Bulk replays take turns: the next step goes to the one that waited longest.
    stepped_at      timestamptz NOT NULL,
    replayed        bigint      NOT NULL CHECK (replayed >= 0),
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
);
CREATE INDEX replays_unfinished ON replays (stepped_at, id) WHERE finished_at IS NULL;

-- Who changed what. Nothing is ever changed or deleted in it.
CREATE TABLE audit_log (
    tenant_id   uuid        NOT NULL REFERENCES tenants (id),
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
);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$;
CREATE TRIGGER audit_log_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Rate limits of all nodes. Counts are worth no write to the log: after a crash windows begin anew.
CREATE UNLOGGED TABLE request_windows (
    subject uuid             NOT NULL,
    bucket  text COLLATE "C" NOT NULL,
    started timestamptz      NOT NULL,
    used    integer          NOT NULL,
    PRIMARY KEY (subject, bucket)
)
WITH (fillfactor = 50);
