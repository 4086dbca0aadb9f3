-- What has a word is known in memory (package index). The table of an older
-- version is large, and emptied while the store is in use (see takeover.go).
DROP TABLE speakers;
