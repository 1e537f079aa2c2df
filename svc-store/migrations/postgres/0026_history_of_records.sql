-- The record in whose history an event belongs: the one that it tells of, or the invoice of a payment; NULL for a test, and
-- for records that svc does not store. Ids of records sort like the times at which they were made, so that the events of new
-- records of all tenants go to the end of the index. The indexes are built while writes go on; an attempt that was interrupted
-- leaves an index that is not valid.
ALTER TABLE events ADD COLUMN IF NOT EXISTS record_id uuid;
UPDATE events SET record_id = substring(data::text FROM
        CASE WHEN kind LIKE 'payment.%' THEN '"invoice_id":"([0-9a-f-]{36})"' ELSE '^\{"id":"([0-9a-f-]{36})"' END)::uuid
    WHERE record_id IS NULL AND only_for IS NULL
    AND split_part(kind, '.', 1) IN ('contact', 'invoice', 'quote', 'booking', 'job', 'payment');
DROP INDEX CONCURRENTLY IF EXISTS events_of_record;
CREATE INDEX CONCURRENTLY events_of_record ON events (record_id, tenant_id, id) WHERE record_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS audit_log_of_object;
CREATE INDEX CONCURRENTLY audit_log_of_object ON audit_log (tenant_id, object_id, id);

-- The records of a contact, newest first.
DROP INDEX CONCURRENTLY IF EXISTS invoices_of_contact;
CREATE INDEX CONCURRENTLY invoices_of_contact ON invoices (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS quotes_of_contact;
CREATE INDEX CONCURRENTLY quotes_of_contact ON quotes (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS bookings_of_contact;
CREATE INDEX CONCURRENTLY bookings_of_contact ON bookings (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS jobs_of_contact;
CREATE INDEX CONCURRENTLY jobs_of_contact ON jobs (tenant_id, contact_id, id) WHERE contact_id IS NOT NULL;
