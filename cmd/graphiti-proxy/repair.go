package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/cli"
	"github.com/graphiti-proxy/graphiti-proxy/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/service"
	"github.com/graphiti-proxy/graphiti-proxy/terminal"
)

func newRepairCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "repair [file…]",
		Short: "Rescue what is readable in damaged files into new ones",
		Long: "Copy what is readable in damaged files of the data directory into new files beside\n" +
			"them, and say what is lost. The damaged files stay as they are. Name state.db,\n" +
			"spool.db or memory.db; without a name, all of them are read. Stop the proxy first.",
		Example: "  graphiti-proxy repair\n  graphiti-proxy repair memory.db",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error {
			cfg, err := cli.LoadConfig(c)
			if err != nil {
				return err
			}
			lock, err := datadir.Acquire(cfg.DataDir, datadir.Command)
			if err != nil {
				return err
			}
			done, err := service.Repair(c.Context(), cfg.DataDir, names)
			if err = errors.Join(err, lock.Unlock()); err != nil {
				return err
			}
			return cli.Output(c, done, func(w io.Writer) {
				for i := range done {
					printRepaired(w, &done[i])
				}
			})
		},
	}
	cli.JSONFlag(c)
	return c
}

func printRepaired(w io.Writer, r *service.Repaired) {
	lost := slices.ContainsFunc(r.Tables, func(t sqlite.Saved) bool { return t.Lost })
	fmt.Fprintf(w, "%s: ", r.File)
	if !lost {
		fmt.Fprintln(w, "everything can be read")
	} else {
		fmt.Fprintln(w, "some of it is lost")
	}
	for _, t := range r.Tables {
		line := fmt.Sprintf("  %-12s %s saved", t.Table, terminal.Count(t.Rows, "row"))
		if t.Lost {
			line += ", the others cannot be read"
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "  to use it: move %s away together with %s-wal and -shm, and rename %s to %s\n",
		r.File, filepath.Base(r.File), filepath.Base(r.New), strings.TrimSuffix(filepath.Base(r.New), ".repaired"))
}
