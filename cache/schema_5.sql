-- Tenants whose credentials an upstream has accepted, the last ones.
CREATE TABLE accepted (
	tenant TEXT PRIMARY KEY,
	at     INTEGER NOT NULL -- Unix days
) STRICT, WITHOUT ROWID;
CREATE INDEX accepted_at ON accepted (at);
