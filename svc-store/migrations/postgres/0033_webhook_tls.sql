-- The certificate that a subscription shows to its receiver, and the authorities that it trusts there, both encrypted
-- (svc_core::webhooks::options).
ALTER TABLE subscriptions
    ADD COLUMN client_certificate bytea,
    ADD COLUMN certificate_authority bytea;
