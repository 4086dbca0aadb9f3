package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// checkedWhole is the size, in bytes, up to which Open checks all pages of a file. The check
// of a larger file would take too long; its damage is found by the reads that meet it.
const checkedWhole = 16 << 20

// preflight tests whether a file can be used, without changing it. SQLite itself would
// delete the log of an empty or missing file, and write the log into a damaged one.
func preflight(path string, version int) (database.FaultKind, error) {
	info, err := os.Stat(path)
	wal := sizeOf(path + "-wal")
	switch {
	case errors.Is(err, os.ErrNotExist):
		if wal > 0 {
			return database.Damaged, errors.New("it is missing, and its log is there")
		}
		return "", nil
	case err != nil:
		return database.Denied, err
	case info.IsDir():
		return database.Denied, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return database.Denied, errors.New("it is no regular file")
	case info.Size() == 0:
		if wal > 0 {
			return database.Damaged, errors.New("it is empty, and its log is not")
		}
		return "", nil
	}
	return readable(path, version, info.Size() <= checkedWhole)
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// readable reads the version and the schema over a read-only connection, and checks every
// page if all is true.
func readable(path string, want int, all bool) (database.FaultKind, error) {
	q := url.Values{"mode": {"ro"}, "_pragma": {busyTimeout}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String())
	if err != nil {
		return database.Denied, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var version, tables int
	err = db.QueryRow("PRAGMA user_version").Scan(&version)
	if err == nil {
		err = db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&tables)
	}
	if err == nil && version != want && (version > 0 || tables > 0) {
		return database.Other, fmt.Errorf("its schema has version %d, this program's has %d", version, want)
	}
	found := "ok"
	if err == nil && all {
		err = db.QueryRow("PRAGMA quick_check(1)").Scan(&found)
	}
	switch kind := kindOf(err); {
	case kind == database.Busy:
		return database.Busy, err
	case kind == database.Unwritten:
		return database.Denied, err
	case err != nil:
		return database.Damaged, err
	case found != "ok":
		return database.Damaged, errors.New(found[strings.LastIndex(found, "\n")+1:])
	}
	return "", nil
}
