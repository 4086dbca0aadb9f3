package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// databases are the files of a data directory.
var databases = []string{"state.db", "memory.db"}

// Repaired is the result for one file.
type Repaired struct {
	File   string         `json:"file"`
	New    string         `json:"new"`
	Tables []sqlite.Saved `json:"tables"`
}

// Repair copies the readable rows of damaged databases to new files in the same directory:
// of the named databases, or of all. No process may use the directory.
func Repair(ctx context.Context, dir string, names []string) (done []Repaired, err error) {
	all := len(names) == 0
	if all {
		names = databases
	}
	for _, name := range names {
		if !slices.Contains(databases, name) {
			return nil, invalid(fmt.Sprintf("%q is not a file of a data directory; write one of %s", name, strings.Join(databases, ", ")))
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); all && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		how := map[string]sqlite.Salvage{"memory.db": embedded.Repair}[name]
		one := Repaired{File: path, New: path + ".repaired"}
		if one.Tables, err = how.Run(ctx, path, one.New); err != nil {
			return done, err
		}
		done = append(done, one)
	}
	if len(done) == 0 {
		return nil, fmt.Errorf("no files to repair in %s", dir)
	}
	return done, nil
}

// TryFiles opens and closes each database of a directory, and returns their errors.
func TryFiles(dir string) (all []error) {
	note := func(file io.Closer, err error) {
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			all = append(all, err)
		}
	}
	s, err := cache.OpenState(filepath.Join(dir, "state.db"), time.Hour)
	note(s, err)
	m, err := embedded.Open(filepath.Join(dir, "memory.db"))
	note(m, err)
	return all
}

// Owners returns the owners of the groups in a data directory; "" stands for a memory
// without a recorded owner. It creates no file.
func Owners(ctx context.Context, dir string) (owners []string, err error) {
	memory := filepath.Join(dir, "memory.db")
	if _, err := os.Stat(memory); err != nil {
		return nil, nil //nolint:nilerr // there is no memory
	}
	e, err := embedded.Open(memory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	list, err := e.Ledger(nil).Owned(ctx, "")
	for _, o := range list {
		owners = append(owners, o.Owner)
	}
	if len(owners) > 0 || err != nil {
		return owners, err
	}
	s, err := e.Stored(ctx)
	if s.Messages > 0 {
		owners = append(owners, "")
	}
	return owners, err
}
