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

// lockDataDir keeps others out of the data directory: two who deliver from one
// spool would deliver everything twice. The lock ends with the process,
// however that ends.
func lockDataDir(cfg *config.Config) (*flock.Flock, error) {
	const remedy = "choose another with data_dir, or make it writable"
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w; %s", err, remedy)
	}
	path := filepath.Join(cfg.DataDir, "lock")
	l := flock.New(path, flock.SetPermissions(0o600))
	locked, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("data_dir: %w; %s", err, remedy)
	}
	if !locked {
		who := ""
		if b, err := os.ReadFile(path); err == nil { // #nosec G304 -- our own file
			if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
				who = fmt.Sprintf(" (process %d)", pid)
			}
		}
		return nil, fmt.Errorf("data_dir: %s is %w%s; stop that one, or choose another data_dir", cfg.DataDir, errInUse, who)
	}
	// For the message above, and nothing else.
	_ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	return l, nil
}
