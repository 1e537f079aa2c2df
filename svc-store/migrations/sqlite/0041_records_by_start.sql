-- The bookings, and the jobs that are planned, by when they start.
CREATE INDEX bookings_by_start ON bookings (tenant_id, start_time, id);
CREATE INDEX jobs_by_start ON jobs (tenant_id, scheduled_start, id) WHERE scheduled_start IS NOT NULL;

-- What the planner is to believe (see 0001).
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('bookings', 'bookings_by_start', '1000000 50000 2 1'),
    ('jobs', 'jobs_by_start', '1000000 50000 2 1');
ANALYZE sqlite_schema;
