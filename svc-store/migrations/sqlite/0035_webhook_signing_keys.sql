-- Asymmetric signatures (svc_core::webhooks::signatures). The private keys are encrypted.
ALTER TABLE subscriptions ADD COLUMN signature TEXT;
ALTER TABLE subscriptions ADD COLUMN signing_keys BLOB;
