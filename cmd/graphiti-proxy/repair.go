package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

func newRepairCommand() *cobra.Command {
	c := described("repair")
	c.Args = cobra.ArbitraryArgs
	c.RunE = configured(func(c *cobra.Command, names []string, cfg *config.Config) error {
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
	})
	cli.JSONFlag(c)
	return c
}
