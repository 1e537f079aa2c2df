-- An event for many subscriptions enters each of their ranges of an index, which are as many pages if the index is large.
-- So pending deliveries, which are few, have an index of their own, and a delivery enters the large one when it has ended.
-- Pending ones alone have a time of the next attempt; a condition on the status would make these indexes candidates for what
-- others serve.
DROP INDEX deliveries_of_subscription;
CREATE INDEX deliveries_pending_of_subscription ON deliveries (tenant_id, subscription_id, id) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX deliveries_ended_of_subscription ON deliveries (tenant_id, subscription_id, id) WHERE next_attempt_at IS NULL;

-- What the planner is to believe (see 0001).
DELETE FROM sqlite_stat1 WHERE idx = 'deliveries_of_subscription';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('deliveries', 'deliveries_pending_of_subscription', '10000 500 50 1'),
    ('deliveries', 'deliveries_ended_of_subscription', '1000000 50000 5000 1');
ANALYZE sqlite_schema;
