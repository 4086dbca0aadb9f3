-- A number is never given to a second group: a search that has looked up the
-- number of a group must not meet another's messages when the group is
-- forgotten meanwhile.
CREATE TABLE groups (
	id   INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL UNIQUE
) STRICT;

-- A message's id is its group's number and its place in the group, so that the
-- index alone tells which messages stand beside each other.
-- Between two talks there is room for many.
CREATE TABLE messages (
	id      INTEGER PRIMARY KEY, -- grp << 32 | place
	grp     INTEGER NOT NULL REFERENCES groups,
	name    TEXT NOT NULL,
	role    TEXT NOT NULL,       -- user, assistant or system
	speaker TEXT NOT NULL,
	content TEXT NOT NULL,
	source  TEXT NOT NULL,
	said    INTEGER NOT NULL,    -- Unix milliseconds
	kept    INTEGER NOT NULL,
	distilled INTEGER NOT NULL DEFAULT 0, -- 1: a model has read it, and its facts answer in its place
	UNIQUE (grp, name)
) STRICT;

-- The meaning of statements and facts; empty for other messages. Messages and facts
-- without a row wait for the model.
CREATE TABLE vectors (
	id    INTEGER PRIMARY KEY, -- of the message or fact
	model TEXT NOT NULL,
	vec   BLOB NOT NULL        -- one signed byte for each dimension, of a vector of length 127
) STRICT;

-- Facts that a model has distilled from messages. A fact has a place among the
-- messages of its group, so that one index finds both.
CREATE TABLE facts (
	id          INTEGER PRIMARY KEY, -- grp << 32 | place
	grp         INTEGER NOT NULL REFERENCES groups,
	name        TEXT NOT NULL,
	owner       TEXT NOT NULL,       -- whose conversation it is from
	role        TEXT NOT NULL,       -- user, or assistant if the person neither said nor accepted it
	text        TEXT NOT NULL,
	kind        TEXT NOT NULL,
	about       TEXT NOT NULL,
	valid_from  INTEGER NOT NULL,    -- Unix milliseconds
	valid_until INTEGER,             -- null: still valid
	created_at  INTEGER NOT NULL,
	ended_by    INTEGER REFERENCES facts,
	UNIQUE (grp, name)
) STRICT;

CREATE INDEX facts_text ON facts (grp, text COLLATE NOCASE);
CREATE INDEX facts_ended ON facts (ended_by) WHERE ended_by IS NOT NULL;

CREATE TABLE fact_keys (
	fact INTEGER NOT NULL REFERENCES facts ON DELETE CASCADE,
	key  TEXT NOT NULL,
	PRIMARY KEY (fact, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE fact_sources (
	fact    INTEGER NOT NULL REFERENCES facts ON DELETE CASCADE,
	message INTEGER NOT NULL REFERENCES messages,
	PRIMARY KEY (fact, message)
) STRICT, WITHOUT ROWID;

CREATE INDEX fact_sources_message ON fact_sources (message);

-- The messages that wait for a model.
CREATE TABLE undistilled (
	id      INTEGER PRIMARY KEY REFERENCES messages ON DELETE CASCADE,
	session TEXT NOT NULL,             -- hash of its conversation, and the provider that had it
	kept    INTEGER NOT NULL,          -- Unix milliseconds
	chars   INTEGER NOT NULL,
	tries   INTEGER NOT NULL DEFAULT 0,
	again   INTEGER NOT NULL DEFAULT 0 -- Unix milliseconds: time of the next attempt
) STRICT;

CREATE INDEX undistilled_session ON undistilled (session);
