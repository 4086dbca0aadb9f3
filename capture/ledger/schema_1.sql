-- One row for each turn and group that it is not known to be kept in.
CREATE TABLE spool (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- order of arrival
	turn     TEXT NOT NULL,
	grp      TEXT NOT NULL,
	scope    TEXT NOT NULL,
	body     TEXT NOT NULL,                     -- the turn, as JSON
	born     INTEGER NOT NULL,                  -- Unix milliseconds
	attempts INTEGER NOT NULL DEFAULT 0,
	dead     INTEGER NOT NULL DEFAULT 0,
	error    TEXT NOT NULL DEFAULT '',
	UNIQUE (turn, grp)
) STRICT;

CREATE INDEX spool_group ON spool (grp, dead, seq);

-- What was delivered, so that it is not delivered again.
CREATE TABLE seen (
	turn TEXT NOT NULL,
	grp  TEXT NOT NULL,
	at   INTEGER NOT NULL,
	PRIMARY KEY (turn, grp)
) STRICT, WITHOUT ROWID;

CREATE INDEX seen_at ON seen (at);
