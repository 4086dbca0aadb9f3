-- Groups that were to be forgotten, and of which it is not proven that they are
-- gone: nothing of them is shown.
CREATE TABLE tombstones (
	grp  TEXT NOT NULL,
	mark TEXT NOT NULL, -- the group, or the mark of a session in it
	PRIMARY KEY (grp, mark)
) STRICT, WITHOUT ROWID;
