-- What records are found by: a text for each in lower case, and the time until which all changes are in it (svc_core::find).
-- Both are empty at first; servers fill them, oldest change first.
CREATE TABLE search_progress (
    tenant_id     uuid   NOT NULL PRIMARY KEY REFERENCES tenants (id),
    -- In microseconds since 1970, as the clock of the account that it is compared with.
    indexed_until bigint NOT NULL
);

CREATE TABLE search_texts (
    place     bigint           NOT NULL,
    tenant_id uuid             NOT NULL REFERENCES tenants (id),
    kind      text COLLATE "C" NOT NULL,
    id        uuid             NOT NULL,
    text      text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
);
CREATE INDEX search_texts_by_place ON search_texts (tenant_id, place);

-- Without these extensions, or without the right to create them, a search for a rare text reads all texts of the account.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE EXTENSION IF NOT EXISTS btree_gin;
    CREATE INDEX search_texts_by_text ON search_texts USING gin (tenant_id, text gin_trgm_ops);
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'searches read all texts of an account: %', SQLERRM;
END
$$;
