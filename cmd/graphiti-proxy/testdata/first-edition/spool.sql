-- Made by make.py.
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE forgot (
	what TEXT PRIMARY KEY, -- a group, or a session's mark
	at   INTEGER NOT NULL  -- Unix microseconds
) STRICT, WITHOUT ROWID;
INSERT INTO "forgot" VALUES('graphiti_workspace_c26071d4188fcc9853a870b11e90a610',1795333260965310);
CREATE TABLE groups (
	grp   TEXT NOT NULL,
	owner TEXT NOT NULL, -- a person's key; in multi mode below a credential where they are not proven
	scope TEXT NOT NULL,
	key   TEXT NOT NULL, -- of the scope
	PRIMARY KEY (grp, owner)
) STRICT, WITHOUT ROWID;
INSERT INTO "groups" VALUES('graphiti_user_19d0191a4a07579538f81a3f3f84fc45','user:ada','user','user:ada');
CREATE TABLE instance (id TEXT NOT NULL) STRICT;
INSERT INTO "instance" VALUES('41c2735c97025b0d');
CREATE TABLE promoted (grp TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE seen (
	turn TEXT NOT NULL,
	grp  TEXT NOT NULL,
	at   INTEGER NOT NULL, open INTEGER NOT NULL DEFAULT 0, said TEXT NOT NULL DEFAULT '', gone INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (turn, grp)
) STRICT, WITHOUT ROWID;
INSERT INTO "seen" VALUES('147af74deebf4af53ecf7227fb353af9','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795333259,0,'dd3827ec12ace9c0dabae735',0);
INSERT INTO "seen" VALUES('2896312a2f1b24de1a4b1abd73305757','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795333260,0,'b2406235c59830e552313cc4',0);
INSERT INTO "seen" VALUES('5ea3986d67f0e7afe787b792b21da1fb','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795333258,0,'00e77b7d91a6f3f5d78ccae9',0);
INSERT INTO "seen" VALUES('be1b75fefc7fdeddec9981ac7379856d','graphiti_workspace_c26071d4188fcc9853a870b11e90a610',1795333260,0,'361f5bb8fc3b8fe526731930',1);
INSERT INTO "seen" VALUES('cut:614e476095a6a8d622db5fb49cb0291b','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795333260,0,'f34fee3f0b556adc1ceab520',0);
CREATE TABLE "spool" (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT, -- order of arrival
	turn     TEXT NOT NULL,
	grp      TEXT NOT NULL,
	scope    TEXT NOT NULL,
	born     INTEGER NOT NULL,                  -- Unix milliseconds
	bytes    INTEGER NOT NULL,                  -- of body
	later    INTEGER NOT NULL DEFAULT 0,        -- 1: after all others of its group
	open     INTEGER NOT NULL DEFAULT 0,        -- 1: its end was not seen
	sent     INTEGER NOT NULL DEFAULT 0,        -- order of hand-over; 0: it waits
	have     INTEGER NOT NULL DEFAULT 0,        -- sides that the group holds: 1 user, 2 assistant
	losses   INTEGER NOT NULL DEFAULT 0,        -- how often the memory lost it, being first in line
	attempts INTEGER NOT NULL DEFAULT 0,
	dead     INTEGER NOT NULL DEFAULT 0,
	error    TEXT NOT NULL DEFAULT '',
	said     TEXT NOT NULL DEFAULT '',          -- stands for what was said
	body     TEXT NOT NULL,                     -- the turn, as JSON; last, so that counting does not read it
	UNIQUE (turn, grp)
) STRICT;
INSERT INTO "spool" VALUES(4,'a84ccedba9de57df3a4741f50796441d','graphiti_user_19d0191a4a07579538f81a3f3f84fc45','user',1795333260594,406,0,0,0,0,0,1,1,'send messages: the memory service answered 422 Unprocessable Entity: no','b33a688fa4aa588115b444f6','{"ID":"a84ccedba9de57df3a4741f50796441d","Session":"session:s4","Owner":"user:ada","User":"Please refuse this turn about fog horns.","Assistant":"Noted: Please refuse this turn about fog horns.","Partial":false,"Said":"2026-11-22T07:41:00.566827833Z","Answered":"2026-11-22T07:41:00.594632865Z","Client":"Python-urllib","Targets":[{"scope":"user","group":"graphiti_user_19d0191a4a07579538f81a3f3f84fc45"}]}');
INSERT INTO "spool" VALUES(6,'61fee6a3ae55eaf5ae4b41e79007e06f','graphiti_user_19d0191a4a07579538f81a3f3f84fc45','user',1795333260979,394,0,0,1,0,0,0,0,'','456da8085a42135126ba905c','{"ID":"61fee6a3ae55eaf5ae4b41e79007e06f","Session":"session:s7","Owner":"user:ada","User":"The unseen turn is about sextants.","Assistant":"Noted: The unseen turn is about sextants.","Partial":false,"Said":"2026-11-22T07:41:00.973101645Z","Answered":"2026-11-22T07:41:00.979354564Z","Client":"Python-urllib","Targets":[{"scope":"user","group":"graphiti_user_19d0191a4a07579538f81a3f3f84fc45"}]}');
INSERT INTO "spool" VALUES(7,'8cffb009cdb2751ae9b97d56b3e8c655','graphiti_user_19d0191a4a07579538f81a3f3f84fc45','user',1795333261985,402,0,0,0,0,0,2,0,'send messages: the memory service answered 503 Service Unavailable','08d069cf92ab6b28907401bb','{"ID":"8cffb009cdb2751ae9b97d56b3e8c655","Session":"session:s8","Owner":"user:ada","User":"The first waiting turn is about ropes.","Assistant":"Noted: The first waiting turn is about ropes.","Partial":false,"Said":"2026-11-22T07:41:01.980918522Z","Answered":"2026-11-22T07:41:01.985789534Z","Client":"Python-urllib","Targets":[{"scope":"user","group":"graphiti_user_19d0191a4a07579538f81a3f3f84fc45"}]}');
INSERT INTO "spool" VALUES(8,'77637b1d322478144ac92062298cdaec','graphiti_user_19d0191a4a07579538f81a3f3f84fc45','user',1795333261994,404,0,0,0,0,0,1,0,'send messages: the memory service answered 503 Service Unavailable','5f0ad83a87e812cdc0a546e2','{"ID":"77637b1d322478144ac92062298cdaec","Session":"session:s8","Owner":"user:ada","User":"The second waiting turn is about knots.","Assistant":"Noted: The second waiting turn is about knots.","Partial":false,"Said":"2026-11-22T07:41:01.986925482Z","Answered":"2026-11-22T07:41:01.993916966Z","Client":"Python-urllib","Targets":[{"scope":"user","group":"graphiti_user_19d0191a4a07579538f81a3f3f84fc45"}]}');
CREATE TABLE talks (
	talk  TEXT NOT NULL,    -- stands for the session
	owner TEXT NOT NULL,
	grp   TEXT NOT NULL,
	at    INTEGER NOT NULL, -- Unix seconds, to the day
	PRIMARY KEY (talk, owner, grp)
) STRICT, WITHOUT ROWID;
INSERT INTO "talks" VALUES('1150a41135ba','user:ada','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795305600);
INSERT INTO "talks" VALUES('18ed7557c73c','user:ada','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795305600);
INSERT INTO "talks" VALUES('72f65d848922','user:ada','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795305600);
INSERT INTO "talks" VALUES('a76638d539e8','user:ada','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795305600);
INSERT INTO "talks" VALUES('b1a3f6e3d84e','user:ada','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795305600);
INSERT INTO "talks" VALUES('de943c1601a5','user:ada','graphiti_user_19d0191a4a07579538f81a3f3f84fc45',1795305600);
CREATE TABLE totals (
	name TEXT PRIMARY KEY, -- delivered, verified, dropped
	n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "totals" VALUES('delivered',4);
INSERT INTO "totals" VALUES('dropped',0);
INSERT INTO "totals" VALUES('verified',4);
CREATE INDEX seen_at ON seen (at);
CREATE INDEX spool_waiting ON spool (grp, later, seq) WHERE dead = 0 AND sent = 0;
CREATE INDEX spool_sent    ON spool (sent, seq) WHERE dead = 0 AND sent > 0;
CREATE INDEX spool_dead    ON spool (seq) WHERE dead = 1;
CREATE INDEX spool_said    ON spool (grp, said);
CREATE INDEX seen_said ON seen (grp, said);
CREATE INDEX talks_at ON talks (at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('spool',8);
COMMIT;
