-- Stands in for Citus on a PostgreSQL server: functions of its names check its rules, and distribute a table by partitioning it
-- by a hash, so that the plan of a statement shows whether one server would do. `ops/citus.sql` runs on it as on Citus.

-- With it the store takes the server for Citus.
INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
SELECT 1, 'citus', oid, 'pg_catalog'::regnamespace, false, 'stand-in' FROM pg_roles WHERE rolname = current_user;

CREATE TABLE pg_dist_partition (logicalrelid regclass NOT NULL PRIMARY KEY, partkey text);

CREATE FUNCTION citus_add_local_table_to_metadata(of regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_constraint c JOIN pg_dist_partition d ON d.logicalrelid IN (c.conrelid, c.confrelid)
        WHERE c.contype = 'f' AND of IN (c.conrelid, c.confrelid) AND d.partkey IS NOT NULL
    ) THEN
        RAISE 'cannot create a foreign key between % and a distributed table', of;
    END IF;
    INSERT INTO pg_dist_partition VALUES (of, NULL);
END $$;

-- Each partition is a shard, and every other one on the same server.
CREATE VIEW pg_dist_placement AS SELECT n::bigint AS shardid, n % 2 + 1 AS groupid FROM generate_series(0, 3) AS n;

CREATE FUNCTION get_shard_id_for_distribution_column(of regclass, value uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT n FROM generate_series(0, 3) AS n WHERE satisfies_hash_partition(of, 4, n, value)
$$;

CREATE FUNCTION run_command_on_all_nodes(command text) RETURNS TABLE (result text) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format('SELECT (%s)::text', command);
END $$;

CREATE FUNCTION create_distributed_table(of regclass, key text, colocate_with text DEFAULT 'default')
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    partitions CONSTANT integer := 4;
    place CONSTANT smallint := (SELECT attnum FROM pg_attribute WHERE attrelid = of AND attname = key);
    whole CONSTANT text := of || '_whole';
    definitions text[];
    keys text[] := '{}';
    options CONSTANT text := (SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = of);
    partition text;
    statement text;
    t record;
BEGIN
    -- A table with partitions is distributed with each of them.
    IF (SELECT relkind FROM pg_class WHERE oid = of) = 'p' THEN
        FOR t IN SELECT c.oid::regclass AS name, c.relname AS text, pg_get_expr(c.relpartbound, c.oid) AS bound
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = of
        LOOP
            EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', of, t.name);
            PERFORM create_distributed_table(t.name, key, colocate_with);
            EXECUTE format('ALTER TABLE %s ATTACH PARTITION %I %s', of, t.text, t.bound);
        END LOOP;
        INSERT INTO pg_dist_partition VALUES (of, key);
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = of AND NOT tgisinternal) THEN
        RAISE 'cannot distribute relation "%" because it has triggers', of;
    END IF;
    FOR t IN SELECT indexrelid::regclass AS name FROM pg_index
        WHERE indrelid = of AND (indisunique OR indisexclusion) AND place <> ALL (indkey)
    LOOP
        RAISE 'cannot create constraint % on "%": it does not contain the distribution column', t.name, of;
    END LOOP;
    IF colocate_with <> 'none'
        AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = colocate_with::regclass AND partkey IS NOT NULL)
    THEN
        RAISE 'relation % is not distributed', colocate_with;
    END IF;

    -- The foreign keys of the table and those to it. Both ends have the key at the same place, so that rows and what they refer
    -- to are on one server.
    FOR t IN
        SELECT c.conrelid::regclass AS referencing, c.conname AS name, c.confrelid::regclass AS referenced, c.conrelid = of AS own,
            pg_get_constraintdef(c.oid) AS definition,
            EXISTS (
                SELECT FROM unnest(c.conkey, c.confkey) AS pair (ours, theirs), pg_attribute a, pg_attribute b
                WHERE a.attrelid = c.conrelid AND a.attnum = pair.ours AND b.attrelid = c.confrelid AND b.attnum = pair.theirs
                    AND a.attname = 'tenant_id'
                    AND b.attname = CASE c.confrelid::regclass::text WHEN 'tenants' THEN 'id' ELSE 'tenant_id' END
            ) AS is_colocated
        FROM pg_constraint c
        WHERE c.contype = 'f' AND of IN (c.conrelid, c.confrelid) AND c.conparentid = 0
    LOOP
        IF NOT t.is_colocated
            OR t.own AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = t.referenced AND partkey IS NOT NULL)
        THEN
            RAISE 'cannot create foreign key constraint % since relations are not colocated', t.name;
        END IF;
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', t.referencing, t.name);
        keys := keys || format('ALTER TABLE %s ADD CONSTRAINT %I %s', t.referencing, t.name, t.definition);
    END LOOP;

    -- The definitions name the table, which the new one is called, too.
    SELECT coalesce(array_agg(definition ORDER BY rank, definition), '{}') INTO definitions FROM (
        SELECT 1 AS rank, format('ALTER TABLE %s ADD CONSTRAINT %I %s', of, conname, pg_get_constraintdef(oid)) AS definition
        FROM pg_constraint WHERE conrelid = of AND contype IN ('p', 'u')
        UNION ALL
        SELECT 2, pg_get_indexdef(indexrelid) FROM pg_index
        WHERE indrelid = of AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
    ) AS made;

    EXECUTE format('ALTER TABLE %s RENAME TO %I', of, whole);
    statement := replace(whole, '_whole', '');
    EXECUTE format(
        'CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE) PARTITION BY HASH (%I)',
        statement, whole, key
    );
    INSERT INTO pg_dist_partition VALUES (statement::regclass, key);
    -- The partitions of a table that had the name before keep theirs.
    IF to_regclass(statement || '_p00') IS NOT NULL THEN
        statement := statement || '_' || of::oid;
    END IF;
    FOR n IN 0 .. partitions - 1 LOOP
        partition := format('%s_p%s', statement, lpad(n::text, 2, '0'));
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)', partition, replace(whole, '_whole', ''),
            partitions, n
        );
        IF options IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %I SET (%s)', partition, options);
        END IF;
    END LOOP;
    EXECUTE format('INSERT INTO %I SELECT * FROM %I', replace(whole, '_whole', ''), whole);
    EXECUTE format('DROP TABLE %I', whole);
    FOREACH statement IN ARRAY definitions || keys LOOP
        EXECUTE statement;
    END LOOP;
END $$;
