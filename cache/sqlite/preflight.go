package sqlite

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

// checkedWhole is the size, in bytes, up to which Open checks all pages of a file. The check
// of a larger file would take too long; its damage is found by the reads that meet it.
const checkedWhole = 16 << 20

// preflight tests whether a file can be used, without changing it. SQLite itself would
// delete the log of an empty or missing file, and write the log into a damaged one.
func preflight(path string, version int) (FaultKind, error) {
	info, err := os.Stat(path)
	wal := sizeOf(path + "-wal")
	switch {
	case errors.Is(err, os.ErrNotExist):
		if wal > 0 {
			return Damaged, errors.New("it is missing, and its log is there")
		}
		return "", nil
	case err != nil:
		return Denied, err
	case info.IsDir():
		return Denied, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return Denied, errors.New("it is no regular file")
	case info.Size() == 0:
		if wal > 0 {
			return Damaged, errors.New("it is empty, and its log is not")
		}
		return "", nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // #nosec G304 -- one of the proxy's own
	if err != nil {
		return Denied, err
	}
	err = whole(f, info.Size(), wal)
	_ = f.Close()
	if err != nil {
		return Damaged, err
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

// whole compares the size of a file with the number of pages in its head. If there is a log,
// the head may count pages that only the log holds.
func whole(f io.ReaderAt, size, wal int64) error {
	head := make([]byte, 100)
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read its head: %w", err)
	} else if err != nil || string(head[:16]) != "SQLite format 3\x00" {
		return errors.New("it is not a database")
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 65536
	}
	counted := binary.BigEndian.Uint32(head[24:]) == binary.BigEndian.Uint32(head[92:])
	if want := page * int64(binary.BigEndian.Uint32(head[28:])); counted && wal == 0 && size < want {
		return fmt.Errorf("it has %d bytes of %d", size, want)
	}
	return nil
}

// readable reads the version and the schema over a read-only connection, and checks every
// page if all is true.
func readable(path string, want int, all bool) (FaultKind, error) {
	q := url.Values{"mode": {"ro"}, "_pragma": {busyTimeout(openPatience)}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String())
	if err != nil {
		return Denied, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var version, tables int
	err = db.QueryRow("PRAGMA user_version").Scan(&version)
	if err == nil {
		err = db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&tables)
	}
	if err == nil && version != want && (version > 0 || tables > 0) {
		return Other, fmt.Errorf("its schema has version %d, this program's has %d", version, want)
	}
	found := "ok"
	if err == nil && all {
		err = db.QueryRow("PRAGMA quick_check(1)").Scan(&found)
	}
	switch kind := kindOf(err); {
	case kind == Busy:
		return Busy, err
	case kind == Unwritten:
		return Denied, err
	case err != nil:
		return Damaged, err
	case found != "ok":
		return Damaged, errors.New(found[strings.LastIndex(found, "\n")+1:])
	}
	return "", nil
}
