-- How many attempts began in an hour, by endpoint, outcome and duration, for charts; the nil endpoint has the sums of its
-- tenant. The hour comes first, so that what is written meanwhile is side by side, and what has expired too.
CREATE TABLE attempt_counts (
    hour            INTEGER NOT NULL,
    tenant_id       BLOB    NOT NULL,
    subscription_id BLOB    NOT NULL,
    outcome         TEXT    NOT NULL,
    duration_ms     INTEGER NOT NULL,
    attempts        INTEGER NOT NULL,
    PRIMARY KEY (hour, tenant_id, subscription_id, outcome, duration_ms)
) STRICT, WITHOUT ROWID;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('attempt_counts', 'attempt_counts', '100000 4000 300 12 4 1');
ANALYZE sqlite_schema;
