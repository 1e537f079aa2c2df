-- What a subscription asks for beyond the contract (svc_core::webhooks::options). Headers and authentication are encrypted.
ALTER TABLE subscriptions
    ADD COLUMN headers bytea,
    ADD COLUMN authentication bytea,
    ADD COLUMN filter text COLLATE "C",
    ADD COLUMN payload text COLLATE "C",
    ADD COLUMN max_per_second integer,
    ADD COLUMN max_in_flight integer,
    ADD COLUMN timeout integer,
    ADD COLUMN retry_schedule text COLLATE "C",
    ADD COLUMN ordering text COLLATE "C",
    ADD COLUMN paced_until timestamptz;
ALTER TABLE subscription_kinds
    ADD COLUMN filter text COLLATE "C",
    ADD COLUMN is_ordered boolean NOT NULL DEFAULT FALSE;

-- What the deliveries that wait for each other have in common.
ALTER TABLE deliveries ADD COLUMN order_key uuid;
