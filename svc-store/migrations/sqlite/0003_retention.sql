-- What is left of old events is found by them, and so is what still refers to one that is to go.
CREATE INDEX deliveries_of_event ON deliveries (tenant_id, event_id);
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('deliveries', 'deliveries_of_event', '1000000 50000 2');
ANALYZE sqlite_schema;
