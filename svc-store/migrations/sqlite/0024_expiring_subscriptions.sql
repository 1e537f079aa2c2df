-- When a subscription that a program made for as long as it runs is deleted, unless the program still runs.
ALTER TABLE subscriptions ADD COLUMN expires_at INTEGER;
CREATE INDEX subscriptions_expiring ON subscriptions (expires_at) WHERE live = TRUE AND expires_at IS NOT NULL;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('subscriptions', 'subscriptions_expiring', '10 1');
ANALYZE sqlite_schema;
