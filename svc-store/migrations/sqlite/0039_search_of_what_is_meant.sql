-- Texts have another form now, in which accents make no difference and short words are marked (svc_core::find). Servers fill the index
-- again. It no longer knows where in a text a trigram is: a search of a text that has one a thousand times took seconds.
DROP TRIGGER search_texts_added;
DROP TRIGGER search_texts_deleted;
DROP TRIGGER search_texts_changed;
DROP TABLE search_index;
DELETE FROM search_texts;
DELETE FROM search_progress;

CREATE VIRTUAL TABLE search_index USING fts5 (
    text, content = 'search_texts', content_rowid = 'place', tokenize = 'trigram case_sensitive 1', columnsize = 0, detail = none
);
-- What is deleted is gone from it at once, and not only hidden until it is merged.
INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', 1);
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
