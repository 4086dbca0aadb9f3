-- When the request came in for which a block was decided; 0: it is not known.
ALTER TABLE blocks ADD COLUMN since INTEGER NOT NULL DEFAULT 0; -- Unix microseconds

-- Groups, and marks of sessions, that were forgotten: what was found or said
-- before is not kept any more.
CREATE TABLE cleared (
	what TEXT PRIMARY KEY, -- a group, or a mark
	at   INTEGER NOT NULL  -- Unix microseconds
) STRICT, WITHOUT ROWID;
