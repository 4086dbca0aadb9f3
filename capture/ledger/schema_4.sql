-- When groups, and sessions, were forgotten: what was said
-- before is not kept any more, whoever brings it.
CREATE TABLE forgot (
	what TEXT PRIMARY KEY, -- a group, or a session's mark
	at   INTEGER NOT NULL  -- Unix microseconds
) STRICT, WITHOUT ROWID;

-- The groups in which sessions left something lately.
CREATE TABLE talks (
	talk  TEXT NOT NULL,    -- stands for the session
	owner TEXT NOT NULL,
	grp   TEXT NOT NULL,
	at    INTEGER NOT NULL, -- Unix seconds, to the day
	PRIMARY KEY (talk, owner, grp)
) STRICT, WITHOUT ROWID;

CREATE INDEX talks_at ON talks (at);

-- 1: the group has forgotten the turn since.
ALTER TABLE seen ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;
