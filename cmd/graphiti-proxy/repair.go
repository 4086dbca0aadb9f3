package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// repairable are the files of a data directory, and how each is read.
var repairable = map[string]sqlite.Salvage{"state.db": {}, "spool.db": ledger.Repair, "memory.db": embedded.Repair}

// repaired is what became of one file.
type repaired struct {
	File   string         `json:"file"`
	New    string         `json:"new"`
	Tables []sqlite.Saved `json:"tables"`
}

func newRepairCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "repair [file…]",
		Short: "Save what can be read of damaged files into new ones",
		Long: "Save what can be read of damaged files of the data directory into new ones beside\n" +
			"them, and say what is lost. The files themselves are left as they are. Files are\n" +
			"state.db, spool.db and memory.db; without one, all that are there. The proxy must\n" +
			"not be running.",
		Example: "  graphiti-proxy repair\n  graphiti-proxy repair memory.db",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error {
			cfg, err := loadConfig(c)
			if err != nil {
				return err
			}
			done, err := repair(c, cfg, names)
			if err != nil {
				return err
			}
			return output(c, done, func(w io.Writer) {
				for i := range done {
					done[i].print(w)
				}
			})
		},
	}
	jsonFlag(c)
	return c
}

// repair saves what can be read of the named files, or of all that are there.
func repair(c *cobra.Command, cfg *config.Config, names []string) (done []repaired, err error) {
	all := len(names) == 0
	if all {
		names = []string{"state.db", "spool.db", "memory.db"}
	}
	for _, name := range names {
		if _, ok := repairable[name]; !ok {
			return nil, usageError{fmt.Errorf("%q is no file of a data directory; say state.db, spool.db or memory.db", name)}
		}
	}
	lock, err := datadir.Acquire(cfg.DataDir, datadir.Command)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	for _, name := range names {
		path := filepath.Join(cfg.DataDir, name)
		if _, err := os.Stat(path); all && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		one := repaired{File: path, New: path + ".repaired"}
		if one.Tables, err = repairable[name].Run(c.Context(), path, one.New); err != nil {
			return done, err
		}
		done = append(done, one)
	}
	if len(done) == 0 {
		return nil, fmt.Errorf("there is nothing to repair in %s", cfg.DataDir)
	}
	return done, nil
}

func (r *repaired) print(w io.Writer) {
	lost := slices.ContainsFunc(r.Tables, func(t sqlite.Saved) bool { return t.Lost })
	fmt.Fprintf(w, "%s: ", r.File)
	if !lost {
		fmt.Fprintln(w, "everything can be read")
	} else {
		fmt.Fprintln(w, "some of it is lost")
	}
	for _, t := range r.Tables {
		rows := "rows"
		if t.Rows == 1 {
			rows = "row"
		}
		line := fmt.Sprintf("  %-12s %d %s saved", t.Table, t.Rows, rows)
		if t.Lost {
			line += ", the others cannot be read"
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "  to use it: move %s away together with %s-wal and -shm, and rename %s to %s\n",
		r.File, filepath.Base(r.File), filepath.Base(r.New), strings.TrimSuffix(filepath.Base(r.New), ".repaired"))
}
