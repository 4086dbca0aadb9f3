package sqlite

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// reason is the operating system's reason to refuse access to a file.
type reason int

const (
	unknown reason = iota
	diskFails
	diskFull
	readOnly
	denied
)

// remedies maps each reason to its remedy, for a file that is not damaged.
var remedies = map[reason]string{
	unknown:   "make room on the disk, or let the proxy's user write there (a full or read-only file system, a quota, a limit on the size of files)",
	diskFails: "do not move the file; check the system's log (dmesg), repair the disk or remount its file system, and restart the proxy",
	diskFull:  "make room on the disk (a full file system, a quota, a limit on the size of files)",
	readOnly:  "make the file system writable again (it is mounted read-only, which a system also does when its disk fails: see its log)",
	denied:    "let the proxy's user read and write the file and its directory",
}

// reasonOf returns the reason that an error of the operating system reports.
func reasonOf(err error) reason {
	switch {
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		return diskFails
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EFBIG), errors.Is(err, syscall.EDQUOT):
		return diskFull
	case errors.Is(err, syscall.EROFS):
		return readOnly
	case errors.Is(err, fs.ErrPermission):
		return denied
	}
	return unknown
}

// cause returns the reason why a file cannot be used, and the error that shows it. The
// errors of SQLite give no reason, and report a failed read (EIO) as damage. Therefore
// cause reads the file itself, or, for a failed write, writes to its directory.
func cause(path string, kind database.FaultKind, err error) (reason, error) {
	if why := reasonOf(err); why != unknown {
		return why, err
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return unknown, err
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_FULL:
		return diskFull, err
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return unknown, err
	}
	if kind == database.Unwritten {
		return reasonOf(tryWrite(filepath.Dir(path))), err
	}
	for _, end := range []string{"", "-wal"} {
		if failed := tryRead(path + end); reasonOf(failed) == diskFails {
			return diskFails, failed
		}
	}
	return unknown, err
}

// tryRead reads the part of a file that Open checks: its first checkedWhole bytes.
func tryRead(path string) error {
	f, err := os.Open(path) // #nosec G304 -- one of the proxy's own
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, io.NewSectionReader(f, 0, checkedWhole))
	return err
}

// tryWrite writes a small file to a directory and deletes it.
func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
