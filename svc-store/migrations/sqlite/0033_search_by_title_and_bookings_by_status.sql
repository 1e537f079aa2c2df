-- Texts begin with a mark now, by which a record is found by its whole title (svc_core::find). Servers fill the index again.
DELETE FROM search_progress;

-- The bookings of a status in the order of their lists.
CREATE INDEX bookings_by_status ON bookings (tenant_id, status, id);
CREATE INDEX bookings_by_status_changed ON bookings (tenant_id, status, updated_at);

-- What the planner is to believe (see 0001).
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('bookings', 'bookings_by_status', '1000000 50000 10000 1'),
    ('bookings', 'bookings_by_status_changed', '1000000 50000 10000 1');
ANALYZE sqlite_schema;
