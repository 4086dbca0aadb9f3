-- Forgetting by generations takes the place of moments. A moment at which
-- something was forgotten becomes its place among them all; what was decided
-- for an earlier request belongs to the generation of that time.
CREATE TABLE generation (number INTEGER NOT NULL) STRICT; -- one row: how often something was forgotten
INSERT INTO generation SELECT 1 + count(*) FROM cleared;

-- The generations of scopes: what belongs to an older one is not written.
CREATE TABLE floors (
	scope      TEXT PRIMARY KEY, -- a group, a session, or what was found in a group
	generation INTEGER NOT NULL,
	born       INTEGER NOT NULL  -- Unix seconds
) STRICT, WITHOUT ROWID;
INSERT INTO floors SELECT what, 1 + row_number() OVER (ORDER BY at, what), at / 1000000 FROM cleared;
INSERT INTO floors SELECT 'facts:' || scope, generation, born FROM floors WHERE scope NOT LIKE 'talk:%';

-- What was decided about turns. It never changes, but for its block that is
-- emptied when what it shows is forgotten.
CREATE TABLE decisions (
	key        BLOB PRIMARY KEY,
	block      TEXT NOT NULL,    -- empty: there is none, or not any more
	facts      INTEGER NOT NULL, -- that the block shows, or has shown
	ingest     INTEGER NOT NULL, -- 1: the turn is to be kept
	generation INTEGER NOT NULL, -- of the request for which it was made
	grps       TEXT NOT NULL,    -- the groups of its facts, each between commas; empty: it is not known
	born       INTEGER NOT NULL  -- Unix seconds
) STRICT, WITHOUT ROWID;
INSERT INTO decisions SELECT key, block, iif(facts < 0, -1 - facts, facts), facts >= 0,
	1 + (SELECT count(*) FROM cleared WHERE at < iif(since > 0, since, blocks.born * 1000000)), grps, born FROM blocks;
DROP TABLE blocks;
DROP TABLE cleared;
CREATE INDEX decisions_born ON decisions (born);

-- What is being forgotten, until it is proven to be gone: nothing of these
-- groups is shown.
CREATE TABLE forgets (
	grp        TEXT NOT NULL,
	scope      TEXT NOT NULL,              -- the group, or a session in it
	session    TEXT NOT NULL DEFAULT '',   -- its key
	owner      TEXT NOT NULL DEFAULT '',   -- whose session; empty: whoever's
	generation INTEGER NOT NULL DEFAULT 1, -- what belongs to an older one is meant
	emptied    INTEGER NOT NULL DEFAULT 0, -- 1: decisions and notes are
	PRIMARY KEY (grp, scope)
) STRICT, WITHOUT ROWID;
INSERT INTO forgets (grp, scope) SELECT grp, mark FROM tombstones;
DROP TABLE tombstones;
