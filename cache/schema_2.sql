-- The groups that a block's facts came from, each between commas; empty where
-- that is not known.
ALTER TABLE blocks ADD COLUMN grps TEXT NOT NULL DEFAULT '';

-- Conversations whose first answer has not ended.
CREATE TABLE pending (
	fingerprint BLOB PRIMARY KEY,
	session     TEXT NOT NULL,
	until       INTEGER NOT NULL -- Unix seconds
) STRICT, WITHOUT ROWID;
