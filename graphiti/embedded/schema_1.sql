-- A number is never given to a second group: a search that has looked up the
-- number of a group must not meet another's messages when the group is
-- forgotten meanwhile.
CREATE TABLE groups (
	id   INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE messages (
	id      INTEGER PRIMARY KEY,
	grp     INTEGER NOT NULL REFERENCES groups,
	name    TEXT NOT NULL,
	role    TEXT NOT NULL,     -- user, assistant or system
	speaker TEXT NOT NULL,
	content TEXT NOT NULL,
	source  TEXT NOT NULL,
	said    INTEGER NOT NULL,  -- Unix milliseconds
	kept    INTEGER NOT NULL,
	UNIQUE (grp, name)
) STRICT;

-- The words of each message, each with its group's number before it (see
-- indexed): a search meets the words of its own group only, and what other
-- groups hold costs it nothing.
CREATE VIRTUAL TABLE words USING fts5 (
	content, content = '', contentless_delete = 1,
	tokenize = "porter unicode61 remove_diacritics 2"
);
