-- The one subscription that an event is meant for, such as a test of it; NULL for all that want its kind.
ALTER TABLE events ADD COLUMN only_for BLOB CHECK (length(only_for) = 16);
