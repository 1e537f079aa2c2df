-- How many live webhook subscriptions a tenant may have; NULL for the limit of the server.
ALTER TABLE tenants ADD COLUMN max_webhooks integer CHECK (max_webhooks BETWEEN 1 AND 1000);
