-- Generations take the place of moments: those of what was forgotten before
-- stand beside the decisions, and are told at the start.
DROP TABLE forgot;
CREATE TABLE floors (
	scope      TEXT PRIMARY KEY, -- a group, or a session
	generation INTEGER NOT NULL, -- turns of an older one are not kept
	at         INTEGER NOT NULL  -- Unix milliseconds
) STRICT, WITHOUT ROWID;
