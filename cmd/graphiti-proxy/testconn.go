package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
)

func newTestConnectionCommand() *cobra.Command {
	var smoke, asJSON bool
	var patience time.Duration
	c := described("test-connection")
	c.RunE = configured(func(c *cobra.Command, _ []string, cfg *config.Config) error {
		if cfg.Memory.Endpoint == "" {
			return errors.New("no memory service to test: set memory.endpoint or GRAPHITI_URL (the embedded memory needs no connection)")
		}
		m, err := cli.ConnectMemory(cfg, func() *config.Config { return cfg }, nil)
		if err != nil {
			return err
		}
		defer func() { _ = m.Memory().Close() }()
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return cli.TryConnection(ctx, c.OutOrStdout(), m, cfg, smoke, asJSON)
	})
	c.Flags().BoolVar(&smoke, "smoke", false, "also write a message to a temporary group, and delete it again")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().DurationVar(&patience, "timeout", time.Minute, "time for all checks")
	return c
}
