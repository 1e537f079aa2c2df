-- What a subscription asks for beyond the contract (svc_core::webhooks::options). Headers and authentication are encrypted.
ALTER TABLE subscriptions ADD COLUMN headers BLOB;
ALTER TABLE subscriptions ADD COLUMN authentication BLOB;
ALTER TABLE subscriptions ADD COLUMN filter TEXT;
ALTER TABLE subscriptions ADD COLUMN payload TEXT;
ALTER TABLE subscriptions ADD COLUMN max_per_second INTEGER;
ALTER TABLE subscriptions ADD COLUMN max_in_flight INTEGER;
ALTER TABLE subscriptions ADD COLUMN timeout INTEGER;
ALTER TABLE subscriptions ADD COLUMN retry_schedule TEXT;
ALTER TABLE subscriptions ADD COLUMN ordering TEXT;
ALTER TABLE subscriptions ADD COLUMN paced_until INTEGER;
ALTER TABLE subscription_kinds ADD COLUMN filter TEXT;
ALTER TABLE subscription_kinds ADD COLUMN is_ordered INTEGER NOT NULL DEFAULT 0 CHECK (is_ordered IN (0, 1));

-- What the deliveries that wait for each other have in common, which only subscriptions have that ask for an order.
ALTER TABLE deliveries ADD COLUMN order_key BLOB;
CREATE INDEX deliveries_ordered ON deliveries (tenant_id, subscription_id, order_key, id)
    WHERE order_key IS NOT NULL AND next_attempt_at IS NOT NULL;

-- What the planner is to believe (see 0001).
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('deliveries', 'deliveries_ordered', '1000 500 50 2 1');
ANALYZE sqlite_schema;
