-- More that a subscription asks for (svc_core::webhooks::options, svc_core::webhooks::signatures). All but the scheme is encrypted.
ALTER TABLE subscriptions ADD COLUMN signature TEXT;
ALTER TABLE subscriptions ADD COLUMN signing_keys BLOB;
ALTER TABLE subscriptions ADD COLUMN client_certificate BLOB;
ALTER TABLE subscriptions ADD COLUMN certificate_authority BLOB;
