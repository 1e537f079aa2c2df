-- What records are found by: a text for each in lower case, and the time until which all changes are in it (svc_core::find).
-- Both are empty at first; servers fill them, oldest change first.
CREATE TABLE search_progress (
    tenant_id     BLOB    NOT NULL PRIMARY KEY REFERENCES tenants (id),
    indexed_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The places of an account are next to each other: they begin with a number that follows from its id. So a search reads the
-- part of the index that is the account's.
CREATE TABLE search_texts (
    place     INTEGER NOT NULL PRIMARY KEY,
    tenant_id BLOB    NOT NULL REFERENCES tenants (id),
    kind      TEXT    NOT NULL,
    id        BLOB    NOT NULL CHECK (length(id) = 16),
    text      TEXT    NOT NULL,
    UNIQUE (tenant_id, kind, id)
) STRICT;

CREATE VIRTUAL TABLE search_index USING fts5 (
    text, content = 'search_texts', content_rowid = 'place', tokenize = 'trigram case_sensitive 1', columnsize = 0
);
CREATE TRIGGER search_texts_added AFTER INSERT ON search_texts BEGIN
    INSERT INTO search_index (rowid, text) VALUES (new.place, new.text);
END;
CREATE TRIGGER search_texts_deleted AFTER DELETE ON search_texts BEGIN
    INSERT INTO search_index (search_index, rowid, text) VALUES ('delete', old.place, old.text);
END;
CREATE TRIGGER search_texts_changed AFTER UPDATE ON search_texts BEGIN
    INSERT INTO search_index (search_index, rowid, text) VALUES ('delete', old.place, old.text);
    INSERT INTO search_index (rowid, text) VALUES (new.place, new.text);
END;
