-- What a session was about, for when its client has dropped its history.
CREATE TABLE snapshots (
	session TEXT PRIMARY KEY, -- a key that holds whose it is
	body    BLOB NOT NULL,
	grps    TEXT NOT NULL,    -- the groups its turns are kept in, each between commas
	born    INTEGER NOT NULL  -- Unix seconds, of the last change
) STRICT, WITHOUT ROWID;
