-- An event for many subscriptions enters each of their ranges of an index, which are as many pages if the index is large.
-- So pending deliveries, which are few, have an index of their own, and a delivery enters the large one when it has ended.
-- Pending ones alone have a time of the next attempt; a condition on the status would make these indexes candidates for what
-- others serve.
-- The indexes are built while writes go on; an attempt that was interrupted leaves an index that is not valid.
DROP INDEX CONCURRENTLY IF EXISTS deliveries_pending_of_subscription;
CREATE INDEX CONCURRENTLY deliveries_pending_of_subscription ON deliveries (tenant_id, subscription_id, id)
    WHERE next_attempt_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS deliveries_ended_of_subscription;
CREATE INDEX CONCURRENTLY deliveries_ended_of_subscription ON deliveries (tenant_id, subscription_id, id)
    WHERE next_attempt_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS deliveries_of_subscription;
