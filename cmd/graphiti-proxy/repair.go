package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

func newRepairCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "repair [file…]",
		Short: "Rescue readable data from damaged files into new ones",
		Long: "Copy readable data from damaged files of the data directory into new files next to\n" +
			"them, and report the losses. The damaged files stay unchanged. Name state.db,\n" +
			"spool.db or memory.db; without a name, the command reads all of them. Stop the\n" +
			"proxy first.",
		Example: "  graphiti-proxy repair\n  graphiti-proxy repair memory.db",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error {
			cfg, err := cli.LoadConfig(c)
			if err != nil {
				return err
			}
			if err := misnamed(cfg); err != nil {
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
					cli.PrintRepaired(w, &done[i])
				}
			})
		},
	}
	cli.JSONFlag(c)
	return c
}
