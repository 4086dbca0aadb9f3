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
)

// Kind says in what way a file cannot be used.
type Kind string

// The kinds of faults. A person must end all but the last two, which end by
// themselves: a write works again, or the file can be opened.
const (
	Damaged   Kind = "is damaged"
	Other     Kind = "is of another version"
	Denied    Kind = "cannot be opened"
	Gone      Kind = "was deleted or replaced while the proxy used it"
	Failing   Kind = "cannot be read: its disk or file system fails"
	Unwritten Kind = "cannot be written"
	Busy      Kind = "is in use by another program"
)

// Fault is the error of a file that cannot be used: which one, why, and what a
// person can do about it.
type Fault struct {
	Path   string
	Kind   Kind
	Since  time.Time
	Remedy string
	Err    error
}

// Error returns one line: file, kind, cause, remedy.
func (t *Fault) Error() string { return t.What() + "; " + t.Remedy }

// What returns Error without the remedy.
func (t *Fault) What() string { return fmt.Sprintf("%s %s: %v", t.Path, t.Kind, t.Err) }

// Unwrap returns the cause.
func (t *Fault) Unwrap() error { return t.Err }

// Lasting reports whether the file can be neither read nor written. Otherwise it
// can be read, and written again once its remedy is done. A nil Fault is not
// lasting.
func (t *Fault) Lasting() bool { return t != nil && !t.Kind.passes() }

func (k Kind) passes() bool { return k == Unwritten || k == Busy }

// IsFault reports whether an error is about the file and not about the statement:
// the same statement may work later, or with another file.
func IsFault(err error) bool {
	var t *Fault
	return errors.As(err, &t) || kindOf(err) != ""
}

// IsBusy reports whether an error says that another program uses the file.
func IsBusy(err error) bool {
	var t *Fault
	return errors.As(err, &t) && t.Kind == Busy || kindOf(err) == Busy
}

// kindOf returns what an error of SQLite says about the file; empty: nothing.
func kindOf(err error) Kind {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return Damaged
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
		return Unwritten
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return Busy
	}
	return ""
}

// newFault makes the Fault of an error. holds says what is lost with the file. If
// the disk fails, the remedy is not to move the file away: the file may be whole.
func newFault(path string, kind Kind, err error, holds string) *Fault {
	why, err := cause(path, kind, err)
	if why == diskFails && kind != Unwritten {
		kind = Failing
	}
	t := &Fault{Path: path, Kind: kind, Since: time.Now(), Err: err}
	away := fmt.Sprintf("move it away together with %s-wal and -shm, which costs %s, and start the proxy again", filepath.Base(path), holds)
	switch kind {
	case Damaged:
		t.Remedy = "it was left as it is; stop the proxy, put a backup in its place or " + away
	case Other:
		t.Remedy = "it was left as it is; use the program that wrote it, whose `memory export` saves what is remembered, or stop the proxy, " + away
	case Denied:
		t.Remedy = "let the proxy's user read and write it and its directory, or " + away
	case Busy:
		t.Remedy = "wait until that program (a backup, a viewer) lets it go, or end it; the proxy tries the file again every second"
	case Gone:
		t.Remedy = "restart the proxy, which then uses what is in its place"
	}
	if kind == Unwritten || kind == Failing || why != unknown && kind == Denied {
		t.Remedy = remedies[why]
	}
	return t
}

// Fault returns what is known to be wrong with the file; nil: nothing. It does not
// look: Check does.
func (d *DB) Fault() *Fault { return d.fault.Load() }

// Check looks whether the path still leads to the file that was opened, and
// whether the file can be written. It returns what is wrong; nil: nothing.
func (d *DB) Check() *Fault {
	if err := d.inPlace(); err != nil {
		return d.notice(err)
	}
	switch t := d.Fault(); {
	case t == nil || t.Kind == Damaged || t.Kind == Failing && tryRead(d.path) != nil:
		return t
	case t.Kind == Gone, t.Kind == Failing: // it has come back
		d.fault.CompareAndSwap(t, nil)
	}
	// Writing the version as it is changes nothing, and shows whether a write works.
	_ = d.Write(context.Background(), func(tx *Tx) error {
		_, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", d.version))
		return err
	})
	return d.Fault()
}

// inPlace returns an error unless the path leads to the files that are open.
// SQLite does not notice when they are deleted, and goes on writing to files that
// are lost when it closes them.
func (d *DB) inPlace() error {
	for _, f := range d.files {
		now, err := os.Stat(f.path)
		if err == nil && !os.SameFile(now, f.info) {
			err = fmt.Errorf("%s is another file now", filepath.Base(f.path))
		}
		if err != nil {
			return newFault(d.path, Gone, err, d.holds) // or Failing
		}
	}
	return nil
}

// opened is a file as it was when it was opened.
type opened struct {
	path string
	info os.FileInfo
}

// note stores which files are open.
func (d *DB) note() error {
	for _, path := range []string{d.path, d.path + "-wal"} {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) && path != d.path {
			continue // where the file system cannot have one
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", d.path, err)
		}
		d.files = append(d.files, opened{path, info})
	}
	return nil
}

// notice stores the fault that an error tells of, unless a worse one is known. It
// returns what is wrong with the file.
func (d *DB) notice(err error) *Fault {
	var t *Fault
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
		case before == nil || before.Kind != t.Kind && before.Kind != Damaged && (t.Lasting() || !before.Lasting()):
		default:
			return before // since it began
		}
		if d.fault.CompareAndSwap(before, t) {
			return t
		}
	}
}

// noticeRead is notice for the error of a read, which tells of damage only.
func (d *DB) noticeRead(err error) {
	if kindOf(err) == Damaged {
		_ = d.notice(err)
	}
}

// written ends a fault of writing: a commit has worked.
func (d *DB) written() {
	if t := d.Fault(); t != nil && !t.Lasting() {
		d.fault.CompareAndSwap(t, nil)
	}
}

// usable returns an error when the file cannot be used at all.
func (d *DB) usable() error {
	if t := d.Fault(); t.Lasting() {
		return t
	}
	return nil
}
