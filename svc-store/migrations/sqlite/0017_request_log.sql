-- The newest API requests of each tenant, without bodies. Rows are appended in the order of time, whatever their tenant, so
-- that a batch of them touches few pages. Nothing refers to other tables: a request is logged after its transaction.
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
    started_at     INTEGER NOT NULL,
    duration_us    INTEGER NOT NULL,
    events         INTEGER NOT NULL,
    first_event_id BLOB,
    last_event_id  BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX request_log_of_tenant ON request_log (tenant_id, id);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('request_log', 'request_log', '100000 1'),
    ('request_log', 'request_log_of_tenant', '100000 1000 1');
ANALYZE sqlite_schema;
