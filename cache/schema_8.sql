-- What stands on cards: what was laid down, and who said it where (package card).
CREATE TABLE standing (
	id   INTEGER PRIMARY KEY, -- the newest has the highest
	list TEXT NOT NULL,
	body BLOB NOT NULL,
	grps TEXT NOT NULL,    -- the group and the session whose forgetting ends it, each between commas
	born INTEGER NOT NULL  -- Unix seconds
) STRICT;
CREATE INDEX standing_list ON standing (list, id);
CREATE INDEX standing_born ON standing (born);
