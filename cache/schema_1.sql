CREATE TABLE blocks (
	key   BLOB PRIMARY KEY,
	block TEXT NOT NULL,    -- empty: decided that there is none
	facts INTEGER NOT NULL,
	born  INTEGER NOT NULL  -- Unix seconds
) STRICT, WITHOUT ROWID;

CREATE INDEX blocks_born ON blocks (born);

CREATE TABLE chain (
	fingerprint BLOB PRIMARY KEY,
	session     TEXT NOT NULL,
	born        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX chain_born ON chain (born);
