-- Tables whose rows come, change and go like those of a queue. By default a table is vacuumed once a fifth of it is dead.
-- Until then an index keeps the entries of dead rows, and whoever asks for the first row walks over them: what is due
-- next, what expires first. So these tables are vacuumed after a number of changes that does not grow with them, or grows
-- slowly where a vacuum reads large indexes.

-- A few rows, each changed by many writes. tenants, numbers and request_windows have had half of each page free from the
-- beginning, for new versions of their rows.
ALTER TABLE tenants SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE numbers SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE request_windows SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE replays SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Each outcome of a delivery changes a subscription, and each use of a key its time of last use, but no column that an
-- index has. With room on the page the new version needs no entry in any index, and the old one is removed without a
-- vacuum.
ALTER TABLE subscriptions SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000);
ALTER TABLE api_keys SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- A delivery is claimed, and then it has its outcome: two dead versions of each row, on whose entries in deliveries_due
-- every search for what is due begins. Pages stay full, since both changes are of indexed columns: each new version needs
-- new entries wherever it is, and the room would be lost for as long as finished deliveries are kept.
ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000);

-- Rows are added at one end and deleted at the other: by their time, or by retention, which starts over every hour.
ALTER TABLE events SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
ALTER TABLE delivery_attempts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
ALTER TABLE idempotency SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
ALTER TABLE used_signatures SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
