-- What a tenant's keys may do in place of the server's rate limits, such as 'all=600 quotes=5'; NULL when nothing
-- differs.
ALTER TABLE tenants ADD COLUMN limits text;
