-- Bulk replays take turns: the next step goes to the one that waited longest.
ALTER TABLE replays ADD COLUMN stepped_at INTEGER NOT NULL DEFAULT 0;
DROP INDEX replays_unfinished;
CREATE INDEX replays_unfinished ON replays (stepped_at, id) WHERE finished_at IS NULL;

-- The one subscription that an event is meant for, such as a test of it; NULL for all that want its kind.
ALTER TABLE events ADD COLUMN only_for BLOB CHECK (length(only_for) = 16);

-- What the planner is to believe (see 0001): without it, what is asked of one endpoint would walk over the deliveries
-- of its tenant to all endpoints, because they already come in the right order.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('deliveries', 'deliveries', '1000000 50000 1'),
    ('deliveries', 'deliveries_of_subscription', '1000000 50000 5000 1'),
    ('deliveries', 'deliveries_due', '10000 500 50 1'),
    ('delivery_attempts', 'delivery_attempts', '1500000 75000 2 1');
ANALYZE sqlite_schema;
