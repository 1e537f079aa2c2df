-- Bulk replays take turns: the next step goes to the one that waited longest.
ALTER TABLE replays ADD COLUMN stepped_at INTEGER NOT NULL DEFAULT 0;
DROP INDEX replays_unfinished;
CREATE INDEX replays_unfinished ON replays (stepped_at, id) WHERE finished_at IS NULL;
