-- It is built while writes go on; an attempt that was interrupted leaves an index that is not valid.
DROP INDEX CONCURRENTLY IF EXISTS tenants_by_overdue_check;
CREATE INDEX CONCURRENTLY tenants_by_overdue_check ON tenants (overdue_check_at);
