-- While an endpoint gets one attempt at a time, after a failure: the time from which the next one can be made.
ALTER TABLE subscriptions ADD COLUMN backoff_until timestamptz;
