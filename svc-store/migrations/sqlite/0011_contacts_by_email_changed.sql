-- A page of contacts by email and updated_since is read in order, as on PostgreSQL. Deletions, and accounts whose contacts
-- may share an email, leave any number of contacts with one address, so sorting them is no page of constant cost.
CREATE INDEX contacts_by_email_changed ON contacts (tenant_id, lower(email), live, updated_at);

-- What the planner is to believe (see 0001).
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('contacts', 'contacts_by_email_changed', '1000000 50000 2 2 1');
ANALYZE sqlite_schema;
