-- What the planner is to believe (see 0001). Without these numbers SQLite read all kinds that any subscription of the tenant
-- wants, both to find the subscriptions that want an event and to delete the kinds of one subscription.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('subscription_kinds', 'subscription_kinds', '100000 1000 50 1'),
    ('subscription_kinds', 'kinds_of_subscription', '100000 1000 5 1');
ANALYZE sqlite_schema;
