-- One row for each turn and group: what became of the turn there. What the
-- states mean is in doc.go.
CREATE TABLE turns (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- order of arrival
	turn     TEXT NOT NULL,
	grp      TEXT NOT NULL,
	state    TEXT NOT NULL,
	digest   TEXT NOT NULL,                     -- stands for what was said in the whole turn
	open     INTEGER NOT NULL DEFAULT 0,        -- 1: its end was not seen
	at       INTEGER NOT NULL,                  -- Unix milliseconds: when it came in; once it is settled, since when
	bytes    INTEGER NOT NULL DEFAULT 0,        -- of body
	scope    TEXT NOT NULL DEFAULT '',
	backfill INTEGER NOT NULL DEFAULT 0,        -- 1: delivered after all others of its group
	sent     INTEGER NOT NULL DEFAULT 0,        -- order of hand-over
	have     INTEGER NOT NULL DEFAULT 0,        -- sides that the group holds: 1 user, 2 assistant
	losses   INTEGER NOT NULL DEFAULT 0,        -- how often the memory lost it
	attempts INTEGER NOT NULL DEFAULT 0,        -- that failed
	error    TEXT NOT NULL DEFAULT '',
	body     TEXT NOT NULL DEFAULT '',          -- the turn, as JSON, while it is needed; last, so that counting does not read it
	UNIQUE (turn, grp)
) STRICT;

INSERT INTO turns (seq, turn, grp, state, digest, open, at, bytes, scope, backfill, sent, have, losses, attempts, error, body)
	SELECT seq, turn, grp, CASE WHEN dead THEN 'dead' WHEN sent > 0 THEN 'sent' ELSE 'pending' END,
		said, open, born, bytes, scope, later, sent, have, losses, attempts, error, body FROM spool ORDER BY seq;
INSERT OR IGNORE INTO turns (turn, grp, state, digest, open, at)
	SELECT turn, grp, CASE WHEN gone THEN 'forgotten' ELSE 'delivered' END, said, open, at * 1000
	FROM seen WHERE NOT (turn >= 'cut:' AND turn < 'cut;') ORDER BY at;
-- Of a turn whose beginning was kept, no end is waited for any more.
INSERT INTO turns (turn, grp, state, digest, at)
	SELECT substr(turn, 5), grp, 'cut', said, at * 1000 FROM seen WHERE turn >= 'cut:' AND turn < 'cut;' ORDER BY at
	ON CONFLICT DO UPDATE SET open = 0;

DROP TABLE spool;
DROP TABLE seen;

CREATE INDEX turns_pending ON turns (grp, backfill, seq) WHERE state = 'pending';
CREATE INDEX turns_sent    ON turns (sent, seq) WHERE state = 'sent';
CREATE INDEX turns_dead    ON turns (seq) WHERE state = 'dead';
CREATE INDEX turns_cut     ON turns (seq) WHERE state = 'cut';
CREATE INDEX turns_queue   ON turns (seq, state, bytes) WHERE state IN ('pending', 'sent', 'dead');
CREATE INDEX turns_settled ON turns (at) WHERE state NOT IN ('pending', 'sent', 'dead');
CREATE INDEX turns_digest  ON turns (grp, digest);
