-- When a subscription last stopped sending, as long as deliveries that were pending then are still to be held or ended.
ALTER TABLE subscriptions ADD COLUMN stopped_at timestamptz;

-- How many attempts of the day have kept the bodies of their responses, and the delivery up to which they were deleted.
ALTER TABLE subscriptions ADD COLUMN responses_kept bigint NOT NULL DEFAULT 0;
ALTER TABLE subscriptions ADD COLUMN responses_deleted_until uuid;

-- Why a delivery failed, if it was not for the outcome of its last attempt.
ALTER TABLE deliveries ADD COLUMN failure_reason text;
