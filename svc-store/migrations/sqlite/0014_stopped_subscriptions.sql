-- When a subscription last stopped sending, as long as deliveries that were pending then are still to be held or ended.
ALTER TABLE subscriptions ADD COLUMN stopped_at INTEGER;

-- How many attempts of the day have kept the bodies of their responses, and the delivery up to which they were deleted.
ALTER TABLE subscriptions ADD COLUMN responses_kept INTEGER NOT NULL DEFAULT 0;
ALTER TABLE subscriptions ADD COLUMN responses_deleted_until BLOB;

-- Why a delivery failed, if it was not for the outcome of its last attempt.
ALTER TABLE deliveries ADD COLUMN failure_reason TEXT;

-- The failed and the held deliveries of an endpoint and of a tenant. Deliveries that succeed never enter these.
CREATE INDEX deliveries_stopped_of_subscription ON deliveries (tenant_id, subscription_id, status, id)
    WHERE status = 'failed' OR status = 'held';
CREATE INDEX deliveries_stopped_of_tenant ON deliveries (tenant_id, status, id) WHERE status = 'failed' OR status = 'held';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('deliveries', 'deliveries_stopped_of_subscription', '10000 500 50 25 1'),
    ('deliveries', 'deliveries_stopped_of_tenant', '10000 500 250 1');
ANALYZE sqlite_schema;
