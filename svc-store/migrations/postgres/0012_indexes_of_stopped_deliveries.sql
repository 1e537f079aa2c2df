-- The failed and the held deliveries of a tenant and of an endpoint. Deliveries that succeed never enter these. They are built
-- while writes go on; an attempt that was interrupted leaves an index that is not valid.
DROP INDEX CONCURRENTLY IF EXISTS deliveries_stopped_of_tenant;
CREATE INDEX CONCURRENTLY deliveries_stopped_of_tenant ON deliveries (tenant_id, status, id)
    WHERE status = 'failed' OR status = 'held';
DROP INDEX CONCURRENTLY IF EXISTS deliveries_stopped_of_subscription;
CREATE INDEX CONCURRENTLY deliveries_stopped_of_subscription ON deliveries (tenant_id, subscription_id, status, id)
    WHERE status = 'failed' OR status = 'held';
