-- The records of all kinds (package cache). Their values are too long for a table
-- WITHOUT ROWID: a write there takes twice the time.
CREATE TABLE records (
	kind   TEXT NOT NULL,
	list   TEXT NOT NULL,    -- for kinds that have several lists
	key    BLOB NOT NULL,
	value  BLOB NOT NULL,
	scopes TEXT NOT NULL,    -- those whose forgetting ends it, each between commas
	born   INTEGER NOT NULL, -- Unix microseconds
	PRIMARY KEY (kind, list, key)
) STRICT;
CREATE INDEX records_born ON records (kind, born);
