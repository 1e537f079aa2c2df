-- Operators name an invoice, a quote, a webhook subscription or a delivery by its id alone. A hash index has no order, so
-- no plan of a list can take it for the key of the tenant.
CREATE INDEX invoices_by_id ON invoices USING hash (id);
CREATE INDEX quotes_by_id ON quotes USING hash (id);
CREATE INDEX subscriptions_by_id ON subscriptions USING hash (id);
CREATE INDEX deliveries_by_id ON deliveries USING hash (id);
