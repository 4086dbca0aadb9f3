-- What was handed over and is not seen to be kept yet stays in the spool.
CREATE TABLE queue (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- order of arrival
	turn     TEXT NOT NULL,
	grp      TEXT NOT NULL,
	scope    TEXT NOT NULL,
	born     INTEGER NOT NULL,                  -- Unix milliseconds
	bytes    INTEGER NOT NULL,                  -- of body
	later    INTEGER NOT NULL DEFAULT 0,        -- 1: after all others of its group
	open     INTEGER NOT NULL DEFAULT 0,        -- 1: its end was not seen
	sent     INTEGER NOT NULL DEFAULT 0,        -- order of hand-over; 0: it waits
	have     INTEGER NOT NULL DEFAULT 0,        -- sides that the group holds: 1 user, 2 assistant
	losses   INTEGER NOT NULL DEFAULT 0,        -- how often the memory lost it, being first in line
	attempts INTEGER NOT NULL DEFAULT 0,
	dead     INTEGER NOT NULL DEFAULT 0,
	error    TEXT NOT NULL DEFAULT '',
	said     TEXT NOT NULL DEFAULT '',          -- stands for what was said
	body     TEXT NOT NULL,                     -- the turn, as JSON; last, so that counting does not read it
	UNIQUE (turn, grp)
) STRICT;

INSERT INTO queue (seq, turn, grp, scope, born, bytes, attempts, dead, error, body)
	SELECT seq, turn, grp, scope, born, length(CAST(body AS BLOB)), attempts, dead, error, body FROM spool;
DROP TABLE spool;
ALTER TABLE queue RENAME TO spool;

CREATE INDEX spool_waiting ON spool (grp, later, seq) WHERE dead = 0 AND sent = 0;
CREATE INDEX spool_sent    ON spool (sent, seq) WHERE dead = 0 AND sent > 0;
CREATE INDEX spool_dead    ON spool (seq) WHERE dead = 1;
CREATE INDEX spool_said    ON spool (grp, said);

ALTER TABLE seen ADD COLUMN open INTEGER NOT NULL DEFAULT 0;
ALTER TABLE seen ADD COLUMN said TEXT NOT NULL DEFAULT '';
CREATE INDEX seen_said ON seen (grp, said);

-- Counts of turns, since the file exists.
CREATE TABLE totals (
	name TEXT PRIMARY KEY, -- delivered, verified, dropped
	n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO totals VALUES ('delivered', 0), ('verified', 0), ('dropped', 0);

-- Whose the groups are that were written to.
CREATE TABLE groups (
	grp   TEXT NOT NULL,
	owner TEXT NOT NULL, -- a person's key; in multi mode below a credential where they are not proven
	scope TEXT NOT NULL,
	key   TEXT NOT NULL, -- of the scope
	PRIMARY KEY (grp, owner)
) STRICT, WITHOUT ROWID;

-- Names this spool among others that write to the same memory.
CREATE TABLE instance (id TEXT NOT NULL) STRICT;
INSERT INTO instance VALUES (lower(hex(randomblob(8))));
