-- Asymmetric signatures (svc_core::webhooks::signatures). The private keys are encrypted.
ALTER TABLE subscriptions
    ADD COLUMN signature text COLLATE "C",
    ADD COLUMN signing_keys bytea;
