-- The bookings, and the jobs that are planned, by when they start. The indexes are built while writes go on; an attempt that was
-- interrupted leaves an index that is not valid.
DROP INDEX CONCURRENTLY IF EXISTS bookings_by_start;
CREATE INDEX CONCURRENTLY bookings_by_start ON bookings (tenant_id, start_time, id);
DROP INDEX CONCURRENTLY IF EXISTS jobs_by_start;
CREATE INDEX CONCURRENTLY jobs_by_start ON jobs (tenant_id, scheduled_start, id) WHERE scheduled_start IS NOT NULL;
