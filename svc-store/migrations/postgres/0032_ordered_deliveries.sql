-- The pending deliveries that wait for each other, which only subscriptions have that ask for an order.
DROP INDEX CONCURRENTLY IF EXISTS deliveries_ordered;
CREATE INDEX CONCURRENTLY deliveries_ordered ON deliveries (tenant_id, subscription_id, order_key, id)
    WHERE order_key IS NOT NULL AND next_attempt_at IS NOT NULL;
