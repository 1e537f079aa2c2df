-- How many attempts began in an hour, by endpoint, outcome and duration, for charts; the nil endpoint has the sums of its
-- tenant. The hour comes first, so that what is written meanwhile is side by side, and what has expired too.
CREATE TABLE attempt_counts (
    hour            timestamptz      NOT NULL,
    tenant_id       uuid             NOT NULL,
    subscription_id uuid             NOT NULL,
    outcome         text COLLATE "C" NOT NULL,
    duration_ms     bigint           NOT NULL,
    attempts        bigint           NOT NULL,
    PRIMARY KEY (hour, tenant_id, subscription_id, outcome, duration_ms)
);
