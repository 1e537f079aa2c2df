-- When a subscription that a program made for as long as it runs is deleted, unless the program still runs.
ALTER TABLE subscriptions ADD COLUMN expires_at timestamptz;
CREATE INDEX subscriptions_expiring ON subscriptions (expires_at) WHERE live = TRUE AND expires_at IS NOT NULL;
