package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// errInUse says that another process uses the data directory.
var errInUse = errors.New("in use by another graphiti-proxy")

// dirLock keeps others out of the data directory: two who deliver from one
// spool would deliver everything twice. The lock ends with the process, however
// that ends. It is held on the directory itself, so that nobody gets in when
// files in it are deleted; and on a file in it, for systems that lock no
// directories, and for versions that know only that one. With the next release
// the file is needed for the former alone.
type dirLock struct {
	dir  *os.File
	file *flock.Flock
	id   string // of the directory
}

func lockDataDir(cfg *config.Config) (*dirLock, error) {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w; choose another with data_dir, or make it writable", err) // a wrong setting
	}
	dir, err := os.Open(cfg.DataDir)
	if err != nil {
		return nil, dirError{fmt.Errorf("data_dir: %w", err)}
	}
	l := &dirLock{dir: dir, id: instanceOf(dir)}
	path := lockFile(cfg)
	if err := lockDir(dir); err != nil {
		_ = dir.Close()
		if errors.Is(err, errInUse) {
			return nil, inUse(cfg)
		}
		return nil, dirError{fmt.Errorf("data_dir: lock %s: %w", cfg.DataDir, err)}
	}
	l.file = flock.New(path, flock.SetPermissions(0o600))
	locked, err := l.file.TryLock()
	if err != nil || !locked {
		_ = dir.Close()
		if err == nil {
			return nil, inUse(cfg)
		}
		return nil, dirError{fmt.Errorf("data_dir: %w", err)}
	}
	l.note(cfg, "")
	return l, nil
}

// note leaves word who holds the lock, and where its admin side listens. It is
// a hint: what it says is checked with who answers there.
func (l *dirLock) note(cfg *config.Config, admin string) {
	_ = os.WriteFile(lockFile(cfg), fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), admin), 0o600)
}

// Unlock lets others in.
func (l *dirLock) Unlock() error { return errors.Join(l.file.Unlock(), l.dir.Close()) }

func lockFile(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "lock") }

// holder is what the holder of the lock has left: its process, 0 where it is
// not known, and the address of its admin side, which may be empty.
func holder(cfg *config.Config) (pid int, admin string) {
	b, err := os.ReadFile(lockFile(cfg))
	if err != nil {
		return 0, ""
	}
	first, rest, _ := strings.Cut(string(b), "\n")
	pid, _ = strconv.Atoi(strings.TrimSpace(first))
	return pid, strings.TrimSpace(rest)
}

func inUse(cfg *config.Config) error {
	who := ""
	if pid, _ := holder(cfg); pid > 0 {
		who = fmt.Sprintf(" (process %d)", pid)
	}
	return fmt.Errorf("data_dir: %s is %w%s; stop that one, or choose another data_dir", cfg.DataDir, errInUse, who)
}

// instance names the data directory of a configuration; empty: there is none.
func instance(cfg *config.Config) string {
	dir, err := os.Open(cfg.DataDir)
	if err != nil {
		return ""
	}
	defer dir.Close()
	return instanceOf(dir)
}
