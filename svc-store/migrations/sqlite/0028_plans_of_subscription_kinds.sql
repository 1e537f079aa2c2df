-- What the planner is to believe (see 0001). Without it, SQLite looked for the subscriptions that want an event through all
-- kinds that the tenant's subscriptions want, and so it did for the kinds of one subscription.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('subscription_kinds', 'subscription_kinds', '100000 1000 50 1'),
    ('subscription_kinds', 'kinds_of_subscription', '100000 1000 5 1');
ANALYZE sqlite_schema;
