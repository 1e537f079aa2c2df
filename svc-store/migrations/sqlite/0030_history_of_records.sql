-- The record in whose history an event belongs: the one that it tells of, or the invoice of a payment; NULL for a test, and
-- for records that svc does not store. Ids of records sort like the times at which they were made, so that the events of new
-- records of all tenants go to the end of the index, which is one page of a write.
ALTER TABLE events ADD COLUMN record_id BLOB;
UPDATE events SET record_id = unhex(json_extract(data, iif(kind LIKE 'payment.%', '$.invoice_id', '$.id')), '-')
    WHERE only_for IS NULL AND length(json_extract(data, iif(kind LIKE 'payment.%', '$.invoice_id', '$.id'))) = 36 AND substr(kind, 1, instr(kind, '.') - 1)
        IN ('contact', 'invoice', 'quote', 'booking', 'job', 'payment');
CREATE INDEX events_of_record ON events (record_id, tenant_id, id) WHERE record_id IS NOT NULL;
CREATE INDEX audit_log_of_object ON audit_log (tenant_id, object_id, id);

-- The records of a contact, newest first.
CREATE INDEX invoices_of_contact ON invoices (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;
CREATE INDEX quotes_of_contact ON quotes (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;
CREATE INDEX bookings_of_contact ON bookings (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;
CREATE INDEX jobs_of_contact ON jobs (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;

-- What the planner is to believe (see 0001).
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('events', 'events_of_record', '1000000 5 5 1'),
    ('audit_log', 'audit_log', '100000 5000 1'),
    ('audit_log', 'audit_log_of_object', '100000 5000 5 1'),
    ('payments', 'payments', '1000000 50000 1'),
    ('payments', 'payments_of_invoice', '1000000 50000 2 1'),
    ('invoices', 'invoices_of_contact', '1000000 50000 10 1'),
    ('quotes', 'quotes_of_contact', '1000000 50000 10 1'),
    ('bookings', 'bookings', '1000000 50000 1'),
    ('bookings', 'bookings_changed', '1000000 50000 1'),
    ('bookings', 'bookings_of_contact', '1000000 50000 10 1'),
    ('jobs', 'jobs_of_contact', '1000000 50000 10 1');
ANALYZE sqlite_schema;
