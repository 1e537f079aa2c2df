-- How much a bulk replay has to go through, counted when it is requested, and how much of that is done. Replays that are older
-- have no count.
ALTER TABLE replays ADD COLUMN total INTEGER NOT NULL DEFAULT 0 CHECK (total >= 0);
ALTER TABLE replays ADD COLUMN done INTEGER NOT NULL DEFAULT 0 CHECK (done >= 0);
