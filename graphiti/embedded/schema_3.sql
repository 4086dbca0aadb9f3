-- What messages mean, where an embedding endpoint is set, and the messages of
-- which it is not known yet.
CREATE TABLE vectors (
	id    INTEGER PRIMARY KEY, -- the message's
	model TEXT NOT NULL,
	vec   BLOB NOT NULL        -- one signed byte for each dimension, of a vector of length 127
) STRICT;

CREATE TABLE unread (id INTEGER PRIMARY KEY) STRICT;
