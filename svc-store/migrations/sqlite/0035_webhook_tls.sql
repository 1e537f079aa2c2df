-- The certificate that a subscription shows to its receiver, and the authorities that it trusts there, both encrypted
-- (svc_core::webhooks::options).
ALTER TABLE subscriptions ADD COLUMN client_certificate BLOB;
ALTER TABLE subscriptions ADD COLUMN certificate_authority BLOB;
