-- Partitions are made and dropped in steps, each for one table in a transaction of its own. What takes long, as on Citus, is made
-- beside the table without a lock; the lock of a table is held for the exchange alone.

-- The next table that needs a partition, and from when to when: if there is none until two lengths after a time, or until
-- `ahead` after it. Deliveries and attempts have the partitions of events.
CREATE FUNCTION due_partition(
    at timestamptz, days bigint, ahead interval,
    OUT parent text, OUT key text, OUT begins timestamptz, OUT ends timestamptz
) LANGUAGE plpgsql STABLE AS $$
DECLARE
    t record;
    length interval;
    first CONSTANT timestamptz := (SELECT p.begins FROM partitions_of('events') p WHERE p.name = 'events_ahead');
BEGIN
    FOR t IN SELECT * FROM (VALUES
        ('events', 'id', days), ('deliveries', 'id', days), ('delivery_attempts', 'delivery_id', days),
        ('request_log', 'id', 1), ('audit_log', 'id', 30)) AS tables (parent, key, days)
    LOOP
        length := make_interval(hours => t.days::integer * 24);
        begins := (SELECT p.begins FROM partitions_of(t.parent) p WHERE p.name = t.parent || '_ahead');
        -- It has all that was written since the last one ended.
        ends := begins + length * greatest(1, ceil(extract(epoch FROM at - begins) / extract(epoch FROM length)));
        IF t.parent IN ('deliveries', 'delivery_attempts') THEN
            ends := coalesce((SELECT p.ends FROM partitions_of('events') p WHERE p.begins = due_partition.begins), ends);
            CONTINUE WHEN begins >= first;
        ELSE
            CONTINUE WHEN begins >= at + greatest(2 * length, ahead);
        END IF;
        parent := t.parent;
        key := t.key;
        RETURN;
    END LOOP;
    begins := NULL;
    ends := NULL;
END $$;

-- Returns whether a table is distributed by Citus.
CREATE FUNCTION is_distributed(name text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_it boolean := false;
BEGIN
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass($1))' INTO found_it USING name;
    END IF;
    RETURN found_it;
END $$;

-- Makes the table that the next partition is made of, which is called `_next` until then. It locks no table that others write
-- to. Returns whether it made one.
CREATE FUNCTION prepare_partition(at timestamptz, days bigint, ahead interval) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    parent CONSTANT text := (SELECT d.parent FROM due_partition(at, days, ahead) d);
    next CONSTANT text := parent || '_next';
    is_usable boolean;
BEGIN
    IF parent IS NULL OR NOT pg_try_advisory_xact_lock(7310004117) THEN
        RETURN false;
    END IF;
    IF to_regclass(next) IS NOT NULL THEN
        -- One that was left behind may be older than a column of its table, or than its distribution.
        SELECT is_distributed(parent) = is_distributed(next) AND NOT EXISTS (
            SELECT attname, atttypid FROM pg_attribute
            WHERE attrelid = to_regclass(parent) AND attnum > 0 AND NOT attisdropped
            EXCEPT
            SELECT attname, atttypid FROM pg_attribute
            WHERE attrelid = to_regclass(next) AND attnum > 0 AND NOT attisdropped
        ) INTO is_usable;
        IF is_usable THEN
            RETURN false;
        END IF;
        EXECUTE format('DROP TABLE %I', next);
    END IF;
    PERFORM create_partition(parent, next, parent || '_ahead');
    IF is_distributed(parent) THEN
        EXECUTE format('SELECT create_distributed_table(%L, ''tenant_id'', colocate_with => %L)', next, parent);
    END IF;
    RETURN true;
END $$;

-- Makes the table that was prepared a partition. Rows that are ahead of it stay in the last partition.
CREATE FUNCTION exchange_partition(at timestamptz, days bigint, ahead interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t record;
    last text;
    next text;
    made text;
    has_rows boolean;
BEGIN
    SELECT * FROM due_partition(at, days, ahead) INTO t;
    last := t.parent || '_ahead';
    next := t.parent || '_next';
    made := t.parent || '_' || to_char(t.begins AT TIME ZONE 'UTC', 'YYYYMMDD');
    IF t.parent IS NULL OR to_regclass(next) IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', t.parent);
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', t.parent, last);
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I WHERE %I < %L)', last, t.key, partition_bound(t.ends)) INTO has_rows;
    IF has_rows THEN
        EXECUTE format('ALTER TABLE %I RENAME TO %I', last, made);
        EXECUTE format('ALTER TABLE %I RENAME TO %I', next, last);
        EXECUTE format('INSERT INTO %I SELECT * FROM %I WHERE %I >= %L', last, made, t.key, partition_bound(t.ends));
        EXECUTE format('DELETE FROM %I WHERE %I >= %L', made, t.key, partition_bound(t.ends));
    ELSE
        EXECUTE format('ALTER TABLE %I RENAME TO %I', next, made);
    END IF;
    PERFORM attach_partition(t.parent, made, t.begins, t.ends);
    PERFORM attach_partition(t.parent, last, t.ends, NULL);
    RETURN true;
END $$;

-- Drops the first partition of one table that ends before its time, attempts before their deliveries and these before their
-- events. What belongs to a pending delivery is moved to the partition `_kept`. Returns the name of the table.
CREATE FUNCTION expire_partition(at timestamptz, before timestamptz) RETURNS text LANGUAGE plpgsql
-- Few rows are looked for in large tables, each by its key.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    t record;
    first timestamptz;
    ending timestamptz;
    expired text;
    rows_to_keep text;
BEGIN
    FOR t IN SELECT * FROM (VALUES
        ('delivery_attempts', before), ('deliveries', before), ('events', before), ('request_log', at - interval '24 hours')
    ) AS tables (parent, before)
    LOOP
        -- That of `_kept` is NULL. The last one has no end.
        first := (SELECT min(p.begins) FROM partitions_of(t.parent) p);
        ending := (SELECT p.ends FROM partitions_of(t.parent) p WHERE p.begins = first);
        CONTINUE WHEN ending IS NULL OR ending > t.before;
        expired := (SELECT p.name FROM partitions_of(t.parent) p WHERE p.begins = first);
        rows_to_keep := CASE t.parent
            WHEN 'delivery_attempts' THEN
                'SELECT a.* FROM (SELECT tenant_id, id FROM deliveries '
                'WHERE id >= %2$L AND id < %3$L AND next_attempt_at IS NOT NULL) AS k '
                'JOIN %1$I AS a ON a.tenant_id = k.tenant_id AND a.delivery_id = k.id'
            WHEN 'deliveries' THEN
                'SELECT d.* FROM (SELECT tenant_id, id FROM %1$I WHERE next_attempt_at IS NOT NULL '
                'UNION SELECT tenant_id, delivery_id FROM delivery_attempts WHERE delivery_id >= %2$L AND delivery_id < %3$L) AS k '
                'JOIN %1$I AS d ON d.tenant_id = k.tenant_id AND d.id = k.id'
            WHEN 'events' THEN
                'SELECT e.* FROM (SELECT DISTINCT tenant_id, event_id FROM deliveries WHERE id >= %2$L AND id < %3$L) AS k '
                'JOIN %1$I AS e ON e.tenant_id = k.tenant_id AND e.id = k.event_id'
        END;
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', t.parent);
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', t.parent, t.parent || '_kept');
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', t.parent, expired);
        IF rows_to_keep IS NOT NULL THEN
            EXECUTE format('INSERT INTO %I ', t.parent || '_kept')
                || format(rows_to_keep, expired, partition_bound(first), partition_bound(ending));
        END IF;
        PERFORM attach_partition(t.parent, t.parent || '_kept', NULL, ending);
        EXECUTE format('DROP TABLE %I', expired);
        RETURN t.parent;
    END LOOP;
    RETURN NULL;
END $$;

-- Does one step: makes the table that was prepared a partition, or drops the first partition of one table that has expired.
-- `first` is when the first partition of events begins that is to be dropped as a whole, `until` is when the first partition
-- begins that has no end, and `done` says for which table something was done. While somebody reads the table for long, such as a
-- backup, or when the statement takes longer than its time, nothing is done, and `blocked` says why.
CREATE FUNCTION step_partitions(
    at timestamptz, before timestamptz, days bigint, ahead interval,
    OUT first timestamptz, OUT until timestamptz, OUT done text, OUT blocked text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    -- One node does it, and others go on.
    IF pg_try_advisory_xact_lock(7310004117) THEN
        SET LOCAL lock_timeout = '200ms';
        BEGIN
            IF exchange_partition(at, days, ahead) THEN
                done := 'made';
            ELSE
                done := expire_partition(at, before);
            END IF;
        EXCEPTION
            WHEN lock_not_available THEN
                blocked := 'lock';
            WHEN query_canceled THEN
                blocked := 'time';
        END;
    END IF;
    first := (SELECT min(begins) FROM partitions_of('events'));
    until := (
        SELECT min(p.begins) FROM (VALUES ('events'), ('deliveries'), ('delivery_attempts'), ('request_log'), ('audit_log')) AS t (name),
            partitions_of(t.name) AS p WHERE p.name = t.name || '_ahead'
    );
END $$;

-- For nodes of the version before, one step at a time.
CREATE OR REPLACE FUNCTION move_partitions(
    at timestamptz, before timestamptz, days bigint, OUT first timestamptz, OUT dropped bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    step record;
BEGIN
    PERFORM prepare_partition(at, days, '0');
    SELECT * FROM step_partitions(at, before, days, '0') INTO step;
    first := step.first;
    dropped := (coalesce(step.done, '') = 'events')::integer;
END $$;

DROP FUNCTION make_partition, drop_partition, keep_pending;

-- They drop what their caller names, so the owner of the tables says who else may call them: whoever might call the one before.
REVOKE ALL ON FUNCTION prepare_partition, step_partitions FROM PUBLIC;
DO $$
DECLARE
    other text;
BEGIN
    FOR other IN
        SELECT r.rolname FROM pg_proc p, aclexplode(p.proacl) AS a JOIN pg_roles r ON r.oid = a.grantee
        WHERE p.oid = 'move_partitions'::regproc AND a.privilege_type = 'EXECUTE' AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION prepare_partition, step_partitions TO %I', other);
    END LOOP;
END $$;
