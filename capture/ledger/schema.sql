-- One row for each turn and group: what became of the turn there. What the
-- states mean is in doc.go. Its texts are the messages of the memory.
CREATE TABLE turns (
	seq        INTEGER PRIMARY KEY,               -- order of arrival
	turn       TEXT NOT NULL,
	grp        TEXT NOT NULL,
	state      TEXT NOT NULL,
	digest     TEXT NOT NULL,                     -- stands for what was said in the whole turn
	open       INTEGER NOT NULL DEFAULT 0,        -- 1: its end was not seen
	generation INTEGER NOT NULL DEFAULT 0,        -- what was forgotten later counts for it
	at         INTEGER NOT NULL,                  -- Unix milliseconds: when it came in; once it is settled, since when
	backfill   INTEGER NOT NULL DEFAULT 0,        -- 1: copied after all others
	imported   INTEGER NOT NULL DEFAULT 0,        -- 1: from a transcript, where each turn is there once
	sent       INTEGER NOT NULL DEFAULT 0,        -- order of sending, in Unix microseconds; 0: Graphiti has certainly processed it, or has never had it
	sends      INTEGER NOT NULL DEFAULT 0,
	losses     INTEGER NOT NULL DEFAULT 0,        -- how often Graphiti lost it
	error      TEXT NOT NULL DEFAULT '',
	owner      TEXT NOT NULL DEFAULT '',          -- whose turn it is: two people may name a session alike
	UNIQUE (turn, grp)
) STRICT;

CREATE INDEX turns_pending ON turns (grp, backfill, seq) WHERE state = 'pending';
CREATE INDEX turns_next    ON turns (backfill, seq) WHERE state = 'pending';
CREATE INDEX turns_sent    ON turns (sent, seq) WHERE state = 'sent';
CREATE INDEX turns_dead    ON turns (seq) WHERE state = 'dead';
CREATE INDEX turns_cut     ON turns (seq) WHERE state = 'cut';
CREATE INDEX turns_queue   ON turns (seq, state) WHERE state IN ('pending', 'sent', 'dead');
CREATE INDEX turns_digest  ON turns (grp, (state NOT IN ('cut', 'forgotten')), digest); -- a forget reads no earlier forgotten turn

-- What was forgotten here and may still be in Graphiti, or appear there: a message, a turn,
-- a session, or a whole group.
CREATE TABLE withdrawn (
	id      INTEGER PRIMARY KEY,
	grp     TEXT NOT NULL,
	session TEXT NOT NULL,    -- its hash; all messages until at
	turn    TEXT NOT NULL,
	message TEXT NOT NULL,    -- its ID
	sent    INTEGER NOT NULL, -- as in turns; 0: Graphiti has processed it
	at      INTEGER NOT NULL  -- Unix milliseconds: when it was forgotten
) STRICT;

-- Episodes of Graphiti whose facts are to be read.
CREATE TABLE unread (
	grp   TEXT NOT NULL,
	key   TEXT NOT NULL,
	body  TEXT NOT NULL, -- the episode without its text, as JSON
	tries INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (grp, key)
) STRICT;

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
