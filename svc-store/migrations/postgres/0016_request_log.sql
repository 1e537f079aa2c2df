-- The newest API requests of each tenant, without bodies. Nothing refers to other tables: a request is logged after its
-- transaction, and a reference would lock the row of its tenant.
CREATE TABLE request_log (
    id             uuid        NOT NULL PRIMARY KEY,
    tenant_id      uuid        NOT NULL,
    request_id     text        NOT NULL,
    key_id         uuid        NOT NULL,
    method         text        NOT NULL,
    path           text        NOT NULL,
    query          text,
    status         integer     NOT NULL,
    code           text,
    started_at     timestamptz NOT NULL,
    duration_us    bigint      NOT NULL,
    events         bigint      NOT NULL,
    first_event_id uuid,
    last_event_id  uuid
);
CREATE INDEX request_log_of_tenant ON request_log (tenant_id, id);
