-- Groups into which something was promoted: they are worth a look in each recall.
CREATE TABLE promoted (grp TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
