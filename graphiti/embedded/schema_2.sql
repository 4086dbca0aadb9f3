-- A message's id is its group's number and its place in the group, so that the
-- index alone tells which messages stand beside each other.
-- Between two talks there is room for many.
ALTER TABLE messages RENAME TO messages_1;
ALTER TABLE groups ADD COLUMN size INTEGER NOT NULL DEFAULT 0; -- messages
ALTER TABLE groups ADD COLUMN talk TEXT NOT NULL DEFAULT '';   -- of the last one
ALTER TABLE groups ADD COLUMN said INTEGER NOT NULL DEFAULT 0; -- of the last one
DROP TABLE words;

CREATE TABLE messages (
	id      INTEGER PRIMARY KEY, -- grp << 32 | place
	grp     INTEGER NOT NULL REFERENCES groups,
	name    TEXT NOT NULL,
	role    TEXT NOT NULL,
	speaker TEXT NOT NULL,
	content TEXT NOT NULL,
	source  TEXT NOT NULL,
	said    INTEGER NOT NULL,
	kept    INTEGER NOT NULL,
	UNIQUE (grp, name)
) STRICT;

-- Who speaks in a group: their names in a question tell whose words are meant.
CREATE TABLE speakers (
	grp  INTEGER NOT NULL REFERENCES groups,
	name TEXT NOT NULL,
	PRIMARY KEY (grp, name)
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE words USING fts5 (
	content, content = '', contentless_delete = 1,
	tokenize = "porter unicode61 remove_diacritics 2"
);
