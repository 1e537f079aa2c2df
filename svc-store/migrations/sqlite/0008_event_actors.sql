-- Who caused an event, for the log of changes; NULL for those from before.
ALTER TABLE events ADD COLUMN actor TEXT;
