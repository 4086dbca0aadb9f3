-- What was decided about turns. It never changes, but for its block that is
-- emptied when what it shows is forgotten.
CREATE TABLE decisions (
	key        BLOB PRIMARY KEY,
	block      TEXT NOT NULL,    -- empty: there is none, or not any more
	facts      INTEGER NOT NULL, -- that the block shows, or has shown
	ingest     INTEGER NOT NULL, -- 1: the turn is to be kept
	generation INTEGER NOT NULL, -- of the request for which it was made
	grps       TEXT NOT NULL,    -- the groups of its facts, each between commas
	born       INTEGER NOT NULL, -- Unix seconds
	reason     TEXT NOT NULL     -- why there is no block
) STRICT, WITHOUT ROWID;
CREATE INDEX decisions_born ON decisions (born);

-- Which session a conversation is, by fingerprints of its beginning.
CREATE TABLE chain (
	fingerprint BLOB PRIMARY KEY,
	session     TEXT NOT NULL,
	born        INTEGER NOT NULL -- Unix seconds
) STRICT, WITHOUT ROWID;
CREATE INDEX chain_born ON chain (born);

-- Conversations whose first answer has not ended.
CREATE TABLE pending (
	fingerprint BLOB PRIMARY KEY,
	session     TEXT NOT NULL,
	until       INTEGER NOT NULL -- Unix seconds
) STRICT, WITHOUT ROWID;

-- What a session was about, for when its client has dropped its history.
CREATE TABLE snapshots (
	session TEXT PRIMARY KEY, -- a key that holds whose it is
	body    BLOB NOT NULL,
	grps    TEXT NOT NULL,    -- the groups its turns are kept in, each between commas
	born    INTEGER NOT NULL  -- Unix seconds, of the last change
) STRICT, WITHOUT ROWID;

-- Tenants whose credentials an upstream has accepted, the last ones.
CREATE TABLE accepted (
	tenant TEXT PRIMARY KEY,
	at     INTEGER NOT NULL -- Unix days
) STRICT, WITHOUT ROWID;
CREATE INDEX accepted_at ON accepted (at);

-- How often something was forgotten: one row.
CREATE TABLE generation (number INTEGER NOT NULL) STRICT;
INSERT INTO generation VALUES (1);

-- The generations of scopes: what belongs to an older one is not written.
CREATE TABLE floors (
	scope      TEXT PRIMARY KEY, -- a group, a session, or what was found in a group
	generation INTEGER NOT NULL,
	born       INTEGER NOT NULL  -- Unix seconds
) STRICT, WITHOUT ROWID;

-- What is being forgotten, until it is proven to be gone: nothing of these
-- groups is shown.
CREATE TABLE forgets (
	grp        TEXT NOT NULL,
	scope      TEXT NOT NULL,    -- the group, or a session in it
	session    TEXT NOT NULL,    -- its key
	owner      TEXT NOT NULL,    -- whose session; empty: whoever's
	generation INTEGER NOT NULL, -- what belongs to an older one is meant
	emptied    INTEGER NOT NULL, -- 1: decisions and notes are
	PRIMARY KEY (grp, scope)
) STRICT, WITHOUT ROWID;

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

-- Whose memory the keys and identities of registered people belong to: who gets
-- another id, or another's, is noticed by them.
CREATE TABLE proofs (
	proof  BLOB PRIMARY KEY, -- a digest
	memory TEXT NOT NULL     -- the key of a person
) STRICT, WITHOUT ROWID;
