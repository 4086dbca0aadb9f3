// Package datadir owns the data directory: who may use it, its small files (the lock,
// the owner, the consent, the secret), and error reports about them.
//
// It must not know what the databases in it hold. Of our packages it imports only
// cache/sqlite, for the faults of a file.
package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// ErrInUse says that another process uses the data directory.
var ErrInUse = errors.New("in use by another graphiti-proxy")

// Lock keeps other processes out of the data directory: two that deliver from one spool
// would deliver everything twice. The lock ends with the process, however that ends. It
// is held on the directory itself, so that it outlasts the files in it, and on a file in
// it, for systems that cannot lock directories.
type Lock struct {
	path string
	dir  *os.File
	file *flock.Flock
	ID   string // of the directory
}

// What holds a lock.
const (
	Proxy   = "proxy"
	Command = "command" // it ends by itself
)

// Acquire locks a data directory for a Proxy or a Command, and creates it if needed.
func Acquire(path, holder string) (*Lock, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w; choose another with data_dir, or make it writable", err) // a wrong setting
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, fault(path, err)
	}
	l := &Lock{path: path, dir: dir, ID: instanceOf(dir)}
	if err := lockDir(dir); err != nil {
		_ = dir.Close()
		if errors.Is(err, ErrInUse) {
			return nil, inUse(path)
		}
		return nil, fault(path, fmt.Errorf("lock: %w", err))
	}
	l.file = flock.New(lockFile(path), flock.SetPermissions(0o600))
	locked, err := l.file.TryLock()
	if err != nil || !locked {
		_ = dir.Close()
		if err == nil {
			return nil, inUse(path)
		}
		return nil, fault(path, err)
	}
	l.note("", holder)
	return l, nil
}

// Serving notes the address of the admin API of the proxy that holds the lock.
func (l *Lock) Serving(admin string) { l.note(admin, Proxy) }

// note writes into the file who holds the lock. It is a hint: readers check who answers
// at the address.
func (l *Lock) note(admin, what string) {
	_ = os.WriteFile(lockFile(l.path), fmt.Appendf(nil, "%d\n%s\n%s\n", os.Getpid(), admin, what), 0o600)
}

// Unlock lets others in.
func (l *Lock) Unlock() error {
	err := l.file.Unlock()
	unlockDir(l.dir) // after the file: the next process locks it first
	return errors.Join(err, l.dir.Close())
}

func lockFile(path string) string { return filepath.Join(path, "lock") }

// Holder is what the holder of a lock has noted.
type Holder struct {
	PID     int    // 0: not known
	Admin   string // the address of its admin API; empty: none
	Command bool
}

// LockHolder reads what the holder of the lock has noted, or the last one.
func LockHolder(path string) (h Holder) {
	b, err := os.ReadFile(lockFile(path))
	if err != nil {
		return h
	}
	lines := append(strings.Split(string(b), "\n"), "", "", "")
	h.PID, _ = strconv.Atoi(strings.TrimSpace(lines[0]))
	h.Admin, h.Command = strings.TrimSpace(lines[1]), strings.TrimSpace(lines[2]) == Command
	return h
}

func inUse(path string) error {
	h := LockHolder(path)
	switch {
	case h.Command:
		return fmt.Errorf("data_dir: %s is %w command (process %d); wait until it ends", path, ErrInUse, h.PID)
	case h.PID > 0:
		return fmt.Errorf("data_dir: %s is %w (process %d); stop that one, or choose another data_dir", path, ErrInUse, h.PID)
	}
	return fmt.Errorf("data_dir: %s is %w; stop that one, or choose another data_dir", path, ErrInUse)
}

// Instance returns a name of the data directory; empty when there is none.
func Instance(path string) string {
	dir, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer dir.Close()
	return instanceOf(dir)
}
