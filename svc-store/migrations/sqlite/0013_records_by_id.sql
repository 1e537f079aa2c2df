-- Operators name an invoice, a quote, a webhook subscription or a delivery by its id alone. Ids sort like the times at
-- which they were made, so new entries of all tenants go to the end of these indexes, which is one page of a write.
CREATE INDEX invoices_by_id ON invoices (id);
CREATE INDEX quotes_by_id ON quotes (id);
CREATE INDEX subscriptions_by_id ON subscriptions (id);
CREATE INDEX deliveries_by_id ON deliveries (id);

-- What the planner is to believe (see 0001): within a tenant, the key is better.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('invoices', 'invoices_by_id', '1000000 2 1'),
    ('quotes', 'quotes_by_id', '1000000 2 1'),
    ('subscriptions', 'subscriptions_by_id', '100000 2 1'),
    ('deliveries', 'deliveries_by_id', '1000000 2');
ANALYZE sqlite_schema;
