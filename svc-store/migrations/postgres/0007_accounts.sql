-- How many live webhook subscriptions a tenant may have; NULL for the limit of the server.
ALTER TABLE tenants ADD COLUMN max_webhooks integer CHECK (max_webhooks BETWEEN 1 AND 1000);

-- How long a key was made to work, in microseconds; NULL for a key without expiry. A rotation moves the expiry of the old
-- key to the end of the overlap, and its replacement gets the lifetime.
ALTER TABLE api_keys ADD COLUMN lifetime bigint;
UPDATE api_keys SET lifetime = (extract(epoch FROM expires_at - created_at) * 1000000)::bigint;

-- The latest expiry among the key's used signatures that were deleted; NULL while none was. A signature that expires no
-- later than this may have been used.
ALTER TABLE api_keys ADD COLUMN signatures_deleted_until timestamptz;
