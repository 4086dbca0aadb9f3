package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// IsFault reports whether an error is about the file and not about the statement: the same
// statement may succeed later, or with another file.
func IsFault(err error) bool {
	var t *database.Fault
	return errors.As(err, &t) || kindOf(err) != ""
}

// IsBusy reports whether the cause of an error is another program that uses the file, or a server
// that is unusable: both may end without a restart of the proxy.
func IsBusy(err error) bool {
	var t *database.Fault
	return errors.As(err, &t) && (t.Kind == database.Busy || t.Kind == database.Away) || kindOf(err) == database.Busy
}

// kindOf returns the kind of fault that an error of SQLite reports, or "".
func kindOf(err error) database.FaultKind {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return database.Damaged
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
		return database.Unwritten
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return database.Busy
	}
	return ""
}

// newFault returns the Fault of an error. holds names the content that is lost with the
// file. If the disk fails, the remedy is not to move the file away: the file may be whole.
func newFault(path string, kind database.FaultKind, err error, holds string) *database.Fault {
	why, err := cause(path, kind, err)
	if why == diskFails && kind != database.Unwritten {
		kind = database.Failing
	}
	t := &database.Fault{Path: path, Kind: kind, Since: time.Now(), Err: err}
	away := fmt.Sprintf("move it away together with %s-wal and -shm, which loses %s, and start the proxy again", filepath.Base(path), holds)
	switch kind {
	case database.Damaged:
		t.Remedy = fmt.Sprintf("it is unchanged; stop the proxy, move it away together with %s-wal and -shm, put a backup in its place (without one, the proxy loses %s), and start the proxy again", filepath.Base(path), holds)
	case database.Other:
		t.Remedy = "it is unchanged; use the version that wrote it, to save memories with its `memory export`, or stop the proxy, " + away
	case database.Denied:
		t.Remedy = "let the proxy's user read and write it and its directory, or " + away
	case database.Busy:
		t.Remedy = "wait until that program (a backup, a viewer) releases it, or stop it; the proxy retries every second"
	case database.Gone:
		t.Remedy = "restart the proxy, to use the current file"
	}
	if kind == database.Unwritten || kind == database.Failing || why != unknown && kind == database.Denied {
		t.Remedy = remedies[why]
	}
	return t
}

// Fault returns the known fault of the file, or nil. It does not test the file, as Check
// does.
func (d *DB) Fault() *database.Fault { return d.fault.Load() }

// Check tests whether the path still leads to the open file and whether the file can be
// written. It returns the fault of the file, or nil.
func (d *DB) Check() *database.Fault {
	if err := d.inPlace(); err != nil {
		return d.notice(err)
	}
	switch t := d.Fault(); {
	case t == nil || t.Kind == database.Damaged || t.Kind == database.Failing && tryRead(d.path) != nil:
		return t
	case t.Kind == database.Gone, t.Kind == database.Failing: // the file is back
		d.fault.CompareAndSwap(t, nil)
	}
	// Writing the current version changes nothing, but tests a write.
	_ = d.Write(context.Background(), func(tx *database.Tx) error {
		_, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", d.version))
		return err
	})
	return d.Fault()
}

// inPlace returns an error unless the paths still lead to the open files. SQLite does not
// notice that they were deleted, and continues to write to files that are lost at their
// close.
func (d *DB) inPlace() error {
	for _, f := range d.files {
		now, err := os.Stat(f.path)
		if err == nil && !os.SameFile(now, f.info) {
			err = fmt.Errorf("%s is another file now", filepath.Base(f.path))
		}
		if err != nil {
			return newFault(d.path, database.Gone, err, d.holds) // or Failing
		}
	}
	return nil
}

// opened identifies an open file.
type opened struct {
	path string
	info os.FileInfo
}

// note stores the identities of the open files.
func (d *DB) note() error {
	for _, path := range []string{d.path, d.path + "-wal"} {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) && path != d.path {
			continue // some file systems do not allow a log
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", d.path, err)
		}
		d.files = append(d.files, opened{path, info})
	}
	return nil
}

// notice stores the fault that an error reports, unless a worse one is known. It returns the
// fault of the file, or nil.
func (d *DB) notice(err error) *database.Fault {
	var t *database.Fault
	if !errors.As(err, &t) {
		kind := kindOf(err)
		if kind == "" {
			return d.Fault()
		}
		t = newFault(d.path, kind, err, d.holds)
	}
	for {
		before := d.fault.Load()
		switch {
		case before == nil || before.Kind != t.Kind && before.Kind != database.Damaged && (t.Lasting() || !before.Lasting()):
		default:
			return before // with the time of its start
		}
		if d.fault.CompareAndSwap(before, t) {
			return t
		}
	}
}

// noticeRead is notice for the error of a read. It ignores every fault except damage.
func (d *DB) noticeRead(err error) {
	if kindOf(err) == database.Damaged {
		_ = d.notice(err)
	}
}

// written ends a fault that is not lasting: a commit has succeeded.
func (d *DB) written() {
	if t := d.Fault(); t != nil && !t.Lasting() {
		d.fault.CompareAndSwap(t, nil)
	}
}

// usable returns the fault of the file if that is lasting.
func (d *DB) usable() error {
	if t := d.Fault(); t.Lasting() {
		return t
	}
	return nil
}
