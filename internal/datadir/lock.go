// Package datadir owns the data directory: its lock, owner and secret files,
// and error reports about them.
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

// ErrInUse reports that another process uses the data directory.
var ErrInUse = errors.New("in use by another graphiti-proxy")

// Lock excludes other processes from the data directory: two processes delivering from
// one spool would deliver every turn twice. The lock ends with the process, even after
// a crash. It is on the directory itself, so that it survives the deletion of files,
// and on a file, for systems that cannot lock directories.
type Lock struct {
	path string
	dir  *os.File
	file *flock.Flock
	ID   string // identifies the directory
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
	l.file = flock.New(lockFile(path), flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR|noFollow))
	locked := false
	made, err := openOwn(lockFile(path), os.O_CREATE|os.O_RDWR)
	if err == nil {
		_ = made.Close()
		locked, err = l.file.TryLock()
	}
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

// Serving records the address of the admin API of the proxy that holds the lock.
func (l *Lock) Serving(admin string) { l.note(admin, Proxy) }

// note writes the holder into the file. Readers treat it as a hint and verify who
// answers at the address.
func (l *Lock) note(admin, what string) {
	if f, err := openOwn(lockFile(l.path), os.O_WRONLY|os.O_TRUNC); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n%s\n%s\n", os.Getpid(), admin, what)
		_ = f.Close()
	}
}

// Unlock releases the lock.
func (l *Lock) Unlock() error {
	err := l.file.Unlock()
	unlockDir(l.dir) // after the file: the next process locks it first
	return errors.Join(err, l.dir.Close())
}

func lockFile(path string) string { return filepath.Join(path, "lock") }

// Holder describes the holder of a lock.
type Holder struct {
	PID     int    // 0 if unknown
	Admin   string // address of its admin API, or ""
	Command bool
}

// LockHolder returns the recorded current or last holder of the lock.
func LockHolder(path string) (h Holder) {
	b, err := readOwn(lockFile(path))
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

// Instance returns an identifier of the data directory, or "" if it does not exist.
func Instance(path string) string {
	dir, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer dir.Close()
	return instanceOf(dir)
}
