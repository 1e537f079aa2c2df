-- What waits for an operator or a replay is counted by metrics. Deliveries that succeed never enter it.
CREATE INDEX deliveries_stopped ON deliveries (state, created_at) WHERE state = 'failed' OR state = 'held';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('deliveries', 'deliveries_stopped', '10000 5000 1');
ANALYZE sqlite_schema;
