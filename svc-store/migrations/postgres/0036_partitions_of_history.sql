-- The tables of what happened, in partitions by the time that their ids were made for: what is older than the retention is
-- dropped with its partition. The table of before is the partition `_kept`, with everything before the first time: its rows, and
-- later those that are older than the retention and not finished. The partition `_ahead` has no end, for accounts whose clock is
-- ahead; it is empty otherwise. Those between are named after the day on which they begin.
--
-- A row has no foreign key to or from these tables, which a partition could not be dropped with. svc writes the rows of an event
-- in one transaction, and `svc db check` finds a row whose other row is missing.

-- With the account in it, as in every other key.
ALTER TABLE request_log DROP CONSTRAINT request_log_pkey,
    ADD CONSTRAINT request_log_pkey PRIMARY KEY USING INDEX request_log_key;
DROP INDEX request_log_of_tenant;

-- The smallest id of a time, and the time of such an id.
CREATE FUNCTION partition_bound(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
CREATE FUNCTION partition_time(bound uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT to_timestamp(('x0000' || left(replace(bound::text, '-', ''), 12))::bit(64)::bigint / 1000.0)
$$;

-- The partitions of a table, the oldest first: NULL where one has no beginning or no end.
CREATE FUNCTION partitions_of(parent text)
RETURNS TABLE (name text, begins timestamptz, ends timestamptz) LANGUAGE sql STABLE AS $$
    SELECT c.relname::text,
        partition_time(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \(''([0-9a-f-]{36})''\)')::uuid),
        partition_time(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([0-9a-f-]{36})''\)')::uuid)
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass(parent)
    ORDER BY 2 NULLS FIRST
$$;

-- Makes a table that can become a partition, with the storage settings of another one.
CREATE FUNCTION create_partition(parent text, name text, settings_of text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    settings CONSTANT text := (SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = to_regclass(settings_of));
    definition text;
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', name, parent);
    IF settings IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %I SET (%s)', name, settings);
    END IF;
    -- Triggers of statements are not inherited; those of rows are.
    FOR definition IN
        SELECT replace(pg_get_triggerdef(oid), format(' ON %I.%I ', current_schema(), parent), format(' ON %I ', name))
        FROM pg_trigger WHERE tgrelid = to_regclass(parent) AND NOT tgisinternal AND tgtype & 1 = 0
    LOOP
        EXECUTE definition;
    END LOOP;
END $$;

CREATE FUNCTION attach_partition(parent text, name text, begins timestamptz, ends timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent, name,
        coalesce(quote_literal(partition_bound(begins)), 'MINVALUE'), coalesce(quote_literal(partition_bound(ends)), 'MAXVALUE')
    );
END $$;

-- Makes a table the first partition of a new one that has its name.
DO $$
DECLARE
    t record;
    bound uuid;
    definition text;
    definitions text[];
BEGIN
    -- In the order in which a write of a node that serves meanwhile locks them.
    LOCK TABLE tenants, subscriptions, events, deliveries, delivery_attempts, request_log, audit_log IN ACCESS EXCLUSIVE MODE;
    FOR t IN SELECT column1 AS name, column2 AS key, column1 || '_kept' AS kept
        FROM (VALUES ('events', 'id'), ('deliveries', 'id'), ('delivery_attempts', 'delivery_id'), ('request_log', 'id'), ('audit_log', 'id')) AS all_tables
    LOOP
        bound := substring(
            (SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = t.name || '_bound' AND conrelid = to_regclass(t.name))
            FROM '[0-9a-f]{8}-[0-9a-f-]{27}'
        );
        -- The definitions name the table that the new one replaces.
        SELECT coalesce(array_agg(made ORDER BY rank, made), '{}') INTO definitions FROM (
            SELECT 1 AS rank, format('ALTER TABLE %I ADD CONSTRAINT %I %s', t.name, conname, pg_get_constraintdef(oid)) AS made
            FROM pg_constraint WHERE conrelid = to_regclass(t.name) AND contype = 'p'
            UNION ALL
            SELECT 2, pg_get_indexdef(indexrelid) FROM pg_index
            WHERE indrelid = to_regclass(t.name) AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
            UNION ALL
            SELECT 3, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = to_regclass(t.name) AND NOT tgisinternal
        ) AS definitions_of_table;

        FOR definition IN
            SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
            WHERE contype = 'f' AND to_regclass(t.name) IN (conrelid, confrelid)
            UNION ALL
            SELECT format('DROP TRIGGER %I ON %I', tgname, t.name) FROM pg_trigger
            WHERE tgrelid = to_regclass(t.name) AND NOT tgisinternal AND tgtype & 1 = 1
            UNION ALL
            SELECT format('ALTER INDEX %s RENAME TO %I', indexrelid::regclass, t.kept || substr(indexrelid::regclass::text, length(t.name) + 1))
            FROM pg_index WHERE indrelid = to_regclass(t.name)
            UNION ALL
            SELECT format('ALTER TABLE %I RENAME TO %I', t.name, t.kept)
        LOOP
            EXECUTE definition;
        END LOOP;
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (%I)', t.name, t.kept, t.key);
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', t.name, t.name || '_bound');
        PERFORM attach_partition(t.name, t.kept, NULL, partition_time(bound));
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', t.kept, t.name || '_bound');
        FOREACH definition IN ARRAY definitions LOOP
            EXECUTE definition;
        END LOOP;
        PERFORM create_partition(t.name, t.name || '_ahead', t.kept);
        PERFORM attach_partition(t.name, t.name || '_ahead', partition_time(bound), NULL);
    END LOOP;
END $$;

-- Makes the next partition of a table, if there is none until two lengths after a time. Rows that are ahead of it stay in the
-- last partition.
CREATE FUNCTION make_partition(parent text, key text, days integer, at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ahead CONSTANT text := parent || '_ahead';
    length CONSTANT interval := make_interval(hours => days * 24);
    first CONSTANT timestamptz := (SELECT begins FROM partitions_of(parent) WHERE name = ahead);
    -- It has all that was written since the last one ended.
    ends CONSTANT timestamptz :=
        first + length * greatest(1, ceil(extract(epoch FROM at - first) / extract(epoch FROM length)));
    made CONSTANT text := parent || '_' || to_char(first AT TIME ZONE 'UTC', 'YYYYMMDD');
    has_rows boolean;
BEGIN
    IF first >= at + 2 * length THEN
        RETURN;
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent);
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, ahead);
    EXECUTE format('ALTER TABLE %I RENAME TO %I', ahead, made);
    PERFORM create_partition(parent, ahead, made);
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I WHERE %I >= %L)', made, key, partition_bound(ends)) INTO has_rows;
    IF has_rows THEN
        EXECUTE format('INSERT INTO %I SELECT * FROM %I WHERE %I >= %L', ahead, made, key, partition_bound(ends));
        EXECUTE format('DELETE FROM %I WHERE %I >= %L', made, key, partition_bound(ends));
    END IF;
    PERFORM attach_partition(parent, made, first, ends);
    PERFORM attach_partition(parent, ahead, ends, NULL);
END $$;

-- Moves the pending deliveries of a detached partition, with their events and attempts.
CREATE FUNCTION keep_pending(suffix text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'INSERT INTO events_kept SELECT * FROM events%1$s AS e WHERE EXISTS (SELECT 1 FROM deliveries%1$s AS d '
        'WHERE d.tenant_id = e.tenant_id AND d.event_id = e.id AND d.status = ''pending'')', suffix
    );
    EXECUTE format(
        'INSERT INTO delivery_attempts_kept SELECT * FROM delivery_attempts%1$s AS a WHERE EXISTS (SELECT 1 FROM deliveries%1$s AS d '
        'WHERE d.tenant_id = a.tenant_id AND d.id = a.delivery_id AND d.status = ''pending'')', suffix
    );
    EXECUTE format('INSERT INTO deliveries_kept SELECT * FROM deliveries%s WHERE status = ''pending''', suffix);
END $$;

-- Drops the first partition of tables that have the same ones, if it ends before a time, and returns how many it dropped. Pending
-- deliveries are moved, with their events and attempts.
CREATE FUNCTION drop_partition(tables text[], before timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    -- That of `_kept` is NULL.
    first CONSTANT timestamptz := (SELECT min(begins) FROM partitions_of(tables[1]));
    ending CONSTANT timestamptz := (SELECT ends FROM partitions_of(tables[1]) WHERE begins = first);
    suffix CONSTANT text := to_char(first AT TIME ZONE 'UTC', '_YYYYMMDD');
    t text;
BEGIN
    -- The last one has no end.
    IF ending IS NULL OR ending > before THEN
        RETURN 0;
    END IF;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', array_to_string(tables, ', '));
    FOREACH t IN ARRAY tables LOOP
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', t, t || '_kept');
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', t, t || suffix);
    END LOOP;
    IF 'deliveries' = ANY (tables) THEN
        PERFORM keep_pending(suffix);
    END IF;
    FOREACH t IN ARRAY tables LOOP
        PERFORM attach_partition(t, t || '_kept', NULL, ending);
        EXECUTE format('DROP TABLE %I', t || suffix);
    END LOOP;
    RETURN 1;
END $$;

-- Moves on to a time: makes the partition of each table that is needed next, and drops the first one that ended before `before`.
-- `days` is the length of the partitions of events. Returns when the first partition of events begins that is to be dropped as a
-- whole, and how many were dropped. While somebody reads one of the tables for long, such as a backup, it does nothing.
CREATE FUNCTION move_partitions(at timestamptz, before timestamptz, days bigint, OUT first timestamptz, OUT dropped bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    dropped := 0;
    -- One node does it, and others go on.
    IF pg_try_advisory_xact_lock(7310004117) THEN
        SET LOCAL lock_timeout = '200ms';
        BEGIN
            PERFORM make_partition(column1, column2, column3, at) FROM (VALUES
                ('events', 'id', days::integer), ('deliveries', 'id', days::integer),
                ('delivery_attempts', 'delivery_id', days::integer), ('request_log', 'id', 1), ('audit_log', 'id', 30)) AS tables;
            dropped := drop_partition('{events,deliveries,delivery_attempts}', before);
            PERFORM drop_partition('{request_log}', at - interval '24 hours');
        EXCEPTION WHEN lock_not_available THEN
            dropped := 0;
        END;
    END IF;
    first := (SELECT min(begins) FROM partitions_of('events'));
END $$;
-- It drops what its caller names, so the owner of the tables says who else may call it.
REVOKE ALL ON FUNCTION move_partitions FROM PUBLIC;
