-- The records of a whole title, those that entered the index last first. The text of a record begins with the line of its title
-- (svc_core::find); the index of trigrams would find each that has these words anywhere.
DROP INDEX CONCURRENTLY IF EXISTS search_texts_by_title;
CREATE INDEX CONCURRENTLY search_texts_by_title ON search_texts (tenant_id, left(split_part(text, E'\n', 1), 200), place);

-- Searches read all that was added to the index of trigrams since it was last tidied up: 256 kB at most, in place of 4 MB.
ALTER INDEX IF EXISTS search_texts_by_text SET (gin_pending_list_limit = 256);
SELECT gin_clean_pending_list(to_regclass('search_texts_by_text'));
