-- Partitions the tables of svc by tenant: `psql --single-transaction -f ops/postgres-partitions.sql URL`, while no server
-- runs and after `svc db migrate`. docs/operations.md, "Beyond one PostgreSQL server", says what it is for.
--
-- Every table whose primary key contains the tenant becomes a table with 16 hash partitions of the same columns,
-- constraints, indexes, triggers and storage parameters. The rows are copied, so there must be disk space for all tables
-- twice. An ordinary table of the same form results again when its rows are copied out with `svc db copy`.

CREATE FUNCTION pg_temp.partition_by_tenant(partitions integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t record;
    statement text;
    statements text[];
    last_statements text[] := '{}';
    name text;
BEGIN
    -- Foreign keys are created again when all tables are there, as they need the primary keys of both tables.
    FOR t IN
        SELECT c.conrelid::regclass AS of, c.conname, pg_get_constraintdef(c.oid) AS definition
        FROM pg_constraint c WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace
        ORDER BY c.conrelid::regclass::text, c.conname
    LOOP
        last_statements := last_statements || format('ALTER TABLE %s ADD CONSTRAINT %I %s', t.of, t.conname, t.definition);
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', t.of, t.conname);
    END LOOP;

    FOR t IN
        SELECT c.oid, c.relname, a.attname AS key, array_to_string(c.reloptions, ', ') AS options
        FROM pg_class c
        JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
            AND a.attname = CASE c.relname WHEN 'tenants' THEN 'id' ELSE 'tenant_id' END
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relpersistence = 'p'
        ORDER BY c.relname
    LOOP
        -- The definitions name the table, which the new one is called, too.
        SELECT coalesce(array_agg(definition ORDER BY kind, definition), '{}') INTO statements FROM (
            SELECT 1 AS kind, format('ALTER TABLE %I ADD CONSTRAINT %I %s', t.relname, conname, pg_get_constraintdef(oid))
                AS definition
            FROM pg_constraint WHERE conrelid = t.oid AND contype IN ('p', 'u')
            UNION ALL
            SELECT 2, pg_get_indexdef(indexrelid) FROM pg_index
            WHERE indrelid = t.oid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
            UNION ALL
            -- Triggers of statements are not inherited, so a partition gets its own; those of rows are.
            SELECT 3, replace(
                pg_get_triggerdef(tr.oid),
                format(' ON %I.%I ', current_schema(), t.relname),
                format(' ON %I.%I ', current_schema(), target)
            )
            FROM pg_trigger tr, unnest(
                array[t.relname::text]
                || array(SELECT format('%s_p%s', t.relname, lpad(n::text, 2, '0')) FROM generate_series(0, partitions - 1) n)
            ) AS target
            WHERE tr.tgrelid = t.oid AND NOT tr.tgisinternal AND (target = t.relname OR tr.tgtype & 1 = 0)
        ) definitions;

        EXECUTE format('ALTER TABLE %I RENAME TO %I', t.relname, t.relname || '_whole');
        EXECUTE format(
            'CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE) PARTITION BY HASH (%I)',
            t.relname, t.relname || '_whole', t.key
        );
        FOR n IN 0 .. partitions - 1 LOOP
            name := format('%s_p%s', t.relname, lpad(n::text, 2, '0'));
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)', name, t.relname, partitions, n
            );
            IF t.options IS NOT NULL THEN
                EXECUTE format('ALTER TABLE %I SET (%s)', name, t.options);
            END IF;
        END LOOP;
        EXECUTE format('INSERT INTO %I SELECT * FROM %I', t.relname, t.relname || '_whole');
        EXECUTE format('DROP TABLE %I', t.relname || '_whole');
        FOREACH statement IN ARRAY statements LOOP
            EXECUTE statement;
        END LOOP;
    END LOOP;

    FOREACH statement IN ARRAY last_statements LOOP
        EXECUTE statement;
    END LOOP;
END $$;

SELECT pg_temp.partition_by_tenant(16);
ANALYZE;
