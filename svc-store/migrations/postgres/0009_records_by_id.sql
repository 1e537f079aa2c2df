-- Operators name an invoice, a quote, a webhook subscription or a delivery by its id alone. A hash index has no order, so
-- no plan of a list can take it for the key of the tenant. The indexes are built while writes go on; an attempt that was
-- interrupted leaves an index that is not valid.
DROP INDEX CONCURRENTLY IF EXISTS invoices_by_id;
CREATE INDEX CONCURRENTLY invoices_by_id ON invoices USING hash (id);
DROP INDEX CONCURRENTLY IF EXISTS quotes_by_id;
CREATE INDEX CONCURRENTLY quotes_by_id ON quotes USING hash (id);
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_id;
CREATE INDEX CONCURRENTLY subscriptions_by_id ON subscriptions USING hash (id);
DROP INDEX CONCURRENTLY IF EXISTS deliveries_by_id;
CREATE INDEX CONCURRENTLY deliveries_by_id ON deliveries USING hash (id);
