-- Distributes the tables of svc on Citus, the rows of each account together, in one transaction: `psql --file ops/citus.sql URL`,
-- on the coordinator, while no server runs and after `svc db migrate`. The database may be empty or filled. Run it
-- again after an upgrade that adds tables: what is distributed already stays as it is.
--
-- It drops, and says so:
-- - foreign keys between tables that are distributed and tables that stay on the coordinator, which Citus does not check. svc
--   writes both rows in one transaction, and `svc db check` finds a row whose other row is missing.
-- - the triggers of audit_log, as Citus runs none. svc never changes an entry, and deletes those of sandboxes alone. Nothing
--   keeps whoever may write to the table from changing it.
--
-- docs/operations/citus.md has the reasons for the place of each table, and what was measured.

BEGIN;

CREATE TEMPORARY TABLE places ("table" name, "column" name) ON COMMIT DROP;

-- Each table by the account that its rows are of, after the tables that it refers to.
INSERT INTO places VALUES
    ('tenants', 'id'),
    ('numbers', 'tenant_id'), ('members', 'tenant_id'), ('idempotency', 'tenant_id'), ('audit_log', 'tenant_id'),
    ('contacts', 'tenant_id'), ('invoices', 'tenant_id'), ('payments', 'tenant_id'), ('bookings', 'tenant_id'),
    ('quotes', 'tenant_id'), ('jobs', 'tenant_id'),
    ('subscriptions', 'tenant_id'), ('subscription_kinds', 'tenant_id'), ('events', 'tenant_id'),
    ('deliveries', 'tenant_id'), ('delivery_attempts', 'tenant_id'), ('replays', 'tenant_id'),
    ('endpoint_schedule', 'tenant_id'), ('attempt_counts', 'tenant_id'), ('request_log', 'tenant_id'),
    ('search_progress', 'tenant_id'), ('search_texts', 'tenant_id'),
    ('uploads', 'tenant_id'), ('oauth_grants', 'tenant_id'), ('streams', 'tenant_id'), ('stream_positions', 'tenant_id'),

-- Those that are found by a secret, of which only the digest is known, stay on the coordinator: whose they are is known when
-- they are found.
    ('api_keys', NULL), ('used_signatures', NULL), ('oauth_codes', NULL), ('oauth_tokens', NULL),
    ('dashboard_links', NULL), ('dashboard_sessions', NULL), ('shared_links', NULL),
-- Those of no account.
    ('platform_keys', NULL), ('oauth_apps', NULL), ('operational_events', NULL), ('settings', NULL), ('schema_migrations', NULL),
-- A row for each key and minute, which may be lost at any time.
    ('request_windows', NULL);

DO $$
DECLARE
    t record;
    dropped text;
BEGIN
    -- Tables that are linked by foreign keys are distributed one server after the other.
    SET LOCAL citus.multi_shard_modify_mode = 'sequential';

    FOR t IN
        SELECT c.conrelid::regclass AS "table", c.conname AS name, c.confrelid::regclass AS other
        FROM pg_constraint c
        JOIN places a ON c.conrelid = to_regclass(a."table")
        JOIN places b ON c.confrelid = to_regclass(b."table")
        WHERE c.contype = 'f' AND (a."column" IS NULL) <> (b."column" IS NULL)
        ORDER BY 1, 2
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', t."table", t.name);
        RAISE NOTICE 'dropped the foreign key % from % to %, of which one stays on the coordinator', t.name, t."table", t.other;
    END LOOP;

    FOR t IN
        SELECT g.tgrelid::regclass AS "table", g.tgname AS name
        FROM places p, pg_partition_tree(to_regclass(p."table")) AS part JOIN pg_trigger g ON g.tgrelid = part.relid
        WHERE NOT g.tgisinternal AND g.tgparentid = 0 AND p."column" IS NOT NULL
        ORDER BY 1, 2
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', t.name, t."table");
        RAISE NOTICE 'dropped the trigger % of %', t.name, t."table";
    END LOOP;

    FOR t IN
        SELECT to_regclass("table") AS "table", "column" FROM places
        WHERE "column" IS NOT NULL AND to_regclass("table") IS NOT NULL
            AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass("table"))
    LOOP
        PERFORM create_distributed_table(
            t."table", t."column", colocate_with => CASE t."table"::text WHEN 'tenants' THEN 'none' ELSE 'tenants' END
        );
        RAISE NOTICE 'distributed % by %', t."table", t."column";
    END LOOP;

    -- Citus takes part in writes of these, so that a transaction that also writes rows of an account is committed on both
    -- servers or on none.
    FOR t IN
        SELECT to_regclass("table") AS "table", "table" AS name FROM places
        WHERE "column" IS NULL AND to_regclass("table") IS NOT NULL
            AND "table" NOT IN ('settings', 'schema_migrations', 'request_windows')
            AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass("table"))
    LOOP
        PERFORM citus_add_local_table_to_metadata(t."table");
        RAISE NOTICE 'made % known to Citus', t.name;
    END LOOP;
END $$;

COMMIT;
