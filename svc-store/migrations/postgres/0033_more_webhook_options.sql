-- More that a subscription asks for (svc_core::webhooks::options, svc_core::webhooks::signatures). All but the scheme is encrypted.
ALTER TABLE subscriptions
    ADD COLUMN signature text COLLATE "C",
    ADD COLUMN signing_keys bytea,
    ADD COLUMN client_certificate bytea,
    ADD COLUMN certificate_authority bytea;
