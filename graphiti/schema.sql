CREATE TABLE messages (
	id      INTEGER PRIMARY KEY,
	grp     TEXT NOT NULL,
	name    TEXT NOT NULL,
	role    TEXT NOT NULL,     -- user, assistant or system
	speaker TEXT NOT NULL,
	content TEXT NOT NULL,
	source  TEXT NOT NULL,
	said    INTEGER NOT NULL,  -- Unix milliseconds
	kept    INTEGER NOT NULL,
	UNIQUE (grp, name)
) STRICT;

-- The group is a column of the index, so that a search meets the messages of
-- its own group only.
CREATE VIRTUAL TABLE words USING fts5 (
	grp, content,
	content = 'messages', content_rowid = 'id',
	tokenize = "porter unicode61 remove_diacritics 2 tokenchars '_'"
);


CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
	INSERT INTO words (rowid, grp, content) VALUES (new.id, new.grp, new.content);
END;

CREATE TRIGGER messages_gone AFTER DELETE ON messages BEGIN
	INSERT INTO words (words, rowid, grp, content) VALUES ('delete', old.id, old.grp, old.content);
END;
