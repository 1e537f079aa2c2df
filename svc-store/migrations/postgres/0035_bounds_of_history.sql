-- Prepares the partitions of 0036, while writes go on. An attempt that was interrupted leaves constraints, and an index that is
-- not valid.
DROP INDEX CONCURRENTLY IF EXISTS request_log_key;
CREATE UNIQUE INDEX CONCURRENTLY request_log_key ON request_log (tenant_id, id);

-- All rows that exist, and those of the time until the next midnight but one, are in one partition of each table. Ids have the
-- time that they were made for in their first 48 bits, in milliseconds; that of an account may be ahead.
DO $$
DECLARE
    t record;
    ends CONSTANT timestamptz := date_trunc('day', greatest(now(), (SELECT to_timestamp(max(clock) / 1000000.0) FROM tenants)), 'UTC')
        + interval '48 hours';
    bound CONSTANT uuid := (lpad(to_hex((extract(epoch FROM ends) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
BEGIN
    FOR t IN VALUES ('events', 'id'), ('deliveries', 'id'), ('delivery_attempts', 'delivery_id'), ('request_log', 'id'), ('audit_log', 'id')
    LOOP
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT IF EXISTS %I', t.column1, t.column1 || '_bound');
        EXECUTE format(
            'ALTER TABLE %I ADD CONSTRAINT %I CHECK (%I < %L) NOT VALID', t.column1, t.column1 || '_bound', t.column2, bound
        );
        -- One lock at a time: nodes that serve meanwhile lock the tables in orders of their own.
        COMMIT;
    END LOOP;
END $$;

-- With valid constraints, no row is read when the tables become partitions.
ALTER TABLE events VALIDATE CONSTRAINT events_bound;
ALTER TABLE deliveries VALIDATE CONSTRAINT deliveries_bound;
ALTER TABLE delivery_attempts VALIDATE CONSTRAINT delivery_attempts_bound;
ALTER TABLE request_log VALIDATE CONSTRAINT request_log_bound;
ALTER TABLE audit_log VALIDATE CONSTRAINT audit_log_bound;
