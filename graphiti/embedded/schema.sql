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
	UNIQUE (grp, name)
) STRICT;

-- What messages mean, where an embedding endpoint is set, and the messages of
-- which it is not known yet.
CREATE TABLE vectors (
	id    INTEGER PRIMARY KEY, -- the message's
	model TEXT NOT NULL,
	vec   BLOB NOT NULL        -- one signed byte for each dimension, of a vector of length 127
) STRICT;

CREATE TABLE unread (id INTEGER PRIMARY KEY) STRICT;
