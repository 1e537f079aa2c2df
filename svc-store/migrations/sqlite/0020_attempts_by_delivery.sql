-- Ids of deliveries sort like the times at which they were made, so without the tenant in front the attempts of all tenants
-- go to the end of the table, which is a few pages of a write.
CREATE TABLE new_delivery_attempts (
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
    PRIMARY KEY (delivery_id, attempt, tenant_id),
    FOREIGN KEY (tenant_id, delivery_id) REFERENCES deliveries (tenant_id, id)
) STRICT, WITHOUT ROWID;
INSERT INTO new_delivery_attempts (tenant_id, delivery_id, attempt, started_at, duration_ms, status, error, response_body,
    response_truncated, remote_addr)
    SELECT tenant_id, delivery_id, attempt, started_at, duration_ms, status, error, response_body, response_truncated,
    remote_addr FROM delivery_attempts ORDER BY delivery_id, attempt;
DROP TABLE delivery_attempts;
ALTER TABLE new_delivery_attempts RENAME TO delivery_attempts;

-- What the planner is to believe (see 0001).
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('delivery_attempts', 'delivery_attempts', '1500000 2 1 1');
ANALYZE sqlite_schema;
