-- Whose memory the keys and identities of registered people belong to: who gets
-- another id, or another's, is noticed by them.
CREATE TABLE proofs (
	proof  BLOB PRIMARY KEY, -- a digest
	memory TEXT NOT NULL     -- the key of a person
) STRICT, WITHOUT ROWID;
