-- Conversations whose first answer has not ended.
CREATE TABLE pending (
	fingerprint BLOB PRIMARY KEY,
	session     TEXT NOT NULL,
	until       INTEGER NOT NULL -- Unix seconds
) STRICT, WITHOUT ROWID;
