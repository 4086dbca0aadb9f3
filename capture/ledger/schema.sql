-- One row for each turn and group: what became of the turn there. What the
-- states mean is in doc.go.
CREATE TABLE turns (
	seq        INTEGER PRIMARY KEY,               -- order of arrival
	turn       TEXT NOT NULL,
	grp        TEXT NOT NULL,
	state      TEXT NOT NULL,
	digest     TEXT NOT NULL,                     -- stands for what was said in the whole turn
	open       INTEGER NOT NULL DEFAULT 0,        -- 1: its end was not seen
	generation INTEGER NOT NULL DEFAULT 0,        -- what was forgotten later counts for it
	at         INTEGER NOT NULL,                  -- Unix milliseconds: when it came in; once it is settled, since when
	bytes      INTEGER NOT NULL DEFAULT 0,        -- of body
	scope      TEXT NOT NULL DEFAULT '',
	backfill   INTEGER NOT NULL DEFAULT 0,        -- 1: delivered after all others of its group
	imported   INTEGER NOT NULL DEFAULT 0,        -- 1: from a transcript, where each turn is there once
	sent       INTEGER NOT NULL DEFAULT 0,        -- order of hand-over
	have       INTEGER NOT NULL DEFAULT 0,        -- sides that the group holds: 1 user, 2 assistant
	losses     INTEGER NOT NULL DEFAULT 0,        -- how often the memory lost it
	attempts   INTEGER NOT NULL DEFAULT 0,        -- that failed
	error      TEXT NOT NULL DEFAULT '',
	body       TEXT NOT NULL DEFAULT '',          -- the turn, as JSON, while it is needed; last, so that counting does not read it
	UNIQUE (turn, grp)
) STRICT;

CREATE INDEX turns_pending ON turns (grp, backfill, seq) WHERE state = 'pending';
CREATE INDEX turns_sent    ON turns (sent, seq) WHERE state = 'sent';
CREATE INDEX turns_dead    ON turns (seq) WHERE state = 'dead';
CREATE INDEX turns_cut     ON turns (seq) WHERE state = 'cut';
CREATE INDEX turns_queue   ON turns (seq, state, bytes) WHERE state IN ('pending', 'sent', 'dead');
CREATE INDEX turns_digest  ON turns (grp, digest);

-- The provider's ids of answers and tool calls of turns, also of forgotten ones: a
-- transcript of the client must not bring them again.
CREATE TABLE answers (
	key TEXT NOT NULL,
	grp TEXT NOT NULL,
	PRIMARY KEY (key, grp)
) STRICT, WITHOUT ROWID;

-- Turns that may be requests about other turns. No group has them yet.
CREATE TABLE held (
	key  TEXT NOT NULL UNIQUE, -- of the turn and its groups
	body TEXT NOT NULL         -- the turn, as JSON
) STRICT;

-- Counts of turns, since the file exists.
CREATE TABLE totals (
	name TEXT PRIMARY KEY, -- delivered, verified, dropped
	n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO totals VALUES ('delivered', 0), ('verified', 0), ('dropped', 0);

-- Whose the groups are that were written to.
CREATE TABLE owners (
	grp   TEXT NOT NULL,
	owner TEXT NOT NULL, -- a person's key; in multi mode below a credential where they are not proven
	scope TEXT NOT NULL,
	key   TEXT NOT NULL, -- of the scope
	PRIMARY KEY (grp, owner)
) STRICT, WITHOUT ROWID;

-- The groups in which sessions left something, for a season.
CREATE TABLE sessions (
	session TEXT NOT NULL,    -- its hash
	owner   TEXT NOT NULL,
	grp     TEXT NOT NULL,
	at      INTEGER NOT NULL, -- Unix seconds, to the day
	PRIMARY KEY (session, owner, grp)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_at ON sessions (at);

-- Groups into which something was promoted: they are worth a look in each recall.
CREATE TABLE promoted (grp TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- Generations of what was forgotten: turns of an older one are not kept.
CREATE TABLE floors (
	scope      TEXT PRIMARY KEY, -- a group, or a session
	generation INTEGER NOT NULL,
	at         INTEGER NOT NULL  -- Unix milliseconds
) STRICT, WITHOUT ROWID;

-- Names this ledger among others that write to the same memory.
CREATE TABLE instance (id TEXT NOT NULL) STRICT;
INSERT INTO instance VALUES (lower(hex(randomblob(8))));
