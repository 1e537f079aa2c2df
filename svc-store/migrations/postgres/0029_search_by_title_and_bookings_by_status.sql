-- Texts begin with a mark now, by which a record is found by its whole title (svc_core::find). Servers fill the index again.
DELETE FROM search_progress;

-- The bookings of a status in the order of their lists.
DROP INDEX CONCURRENTLY IF EXISTS bookings_by_status;
CREATE INDEX CONCURRENTLY bookings_by_status ON bookings (tenant_id, status, id);
DROP INDEX CONCURRENTLY IF EXISTS bookings_by_status_changed;
CREATE INDEX CONCURRENTLY bookings_by_status_changed ON bookings (tenant_id, status, updated_at);
