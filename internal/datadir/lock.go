// Package datadir owns the data directory: its lock, owner and secret files,
// and error reports about them.
package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// ErrInUse reports that another process uses the data directory.
var ErrInUse = errors.New("in use by another graphiti-proxy")

// Lock excludes other processes from the data directory: two processes delivering from
// one spool would deliver every turn twice. The lock ends with the process, even after
// a crash. It is on the directory itself, so that it survives the deletion of files, or on
// a file, on systems that cannot lock directories, such as Windows and NFS.
type Lock struct {
	path string
	*flock.Flock
}

// The kinds of lock holders.
const (
	Proxy   = "proxy"
	Command = "command" // ends by itself
)

// Acquire locks a data directory for a Proxy or a Command, and creates it if needed.
func Acquire(path, holder string) (*Lock, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w; choose another with data_dir, or make it writable", err) // a wrong setting
	}
	file, err := openOwn(lockFile(path), os.O_CREATE|os.O_RDWR)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return nil, fault(path, err)
	}
	l := &Lock{path, flock.New(path, flock.SetFlag(os.O_RDONLY))}
	locked, err := l.TryLock()
	if err != nil {
		l.Flock = flock.New(lockFile(path), flock.SetFlag(os.O_RDWR|noFollow))
		locked, err = l.TryLock()
	}
	switch {
	case err != nil:
		return nil, fault(path, fmt.Errorf("lock: %w", err))
	case !locked:
		return nil, inUse(path)
	}
	l.note(holder)
	return l, nil
}

func (l *Lock) note(holder string) {
	if f, err := openOwn(lockFile(l.path), os.O_WRONLY|os.O_TRUNC); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n%s\n", os.Getpid(), holder)
		_ = f.Close()
	}
}

// Dir returns the directory, or "" without a lock.
func (l *Lock) Dir() string {
	if l == nil {
		return ""
	}
	return l.path
}

func lockFile(path string) string { return filepath.Join(path, "lock") }

// inUse returns the error for a locked directory, with its recorded holder.
func inUse(path string) error {
	b, _ := readOwn(lockFile(path)) // empty if unreadable
	pid, holder, _ := strings.Cut(string(b), "\n")
	if strings.TrimSpace(holder) == Command {
		return fmt.Errorf("data_dir: %s is %w command (process %s); wait until it ends", path, ErrInUse, pid)
	}
	return fmt.Errorf("data_dir: %s is %w (process %s); stop that one, or choose another data_dir", path, ErrInUse, cmp.Or(pid, "unknown"))
}
