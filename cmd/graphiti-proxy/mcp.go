package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/mcpserver"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
)

func newMCPCommand() *cobra.Command {
	c := described("mcp")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := cli.LoadConfig(c)
		if err != nil {
			return err
		}
		srv := mcpserver.New(mcpserver.Options{
			Version: telemetry.Version(), Call: anywhere(cfg), Project: projectFinder(func() *config.Config { return cfg }), Dir: cli.Dir(c),
			Log: slog.New(slog.DiscardHandler),
		})
		err = srv.Run(c.Context(), &mcp.IOTransport{Reader: io.NopCloser(c.InOrStdin()), Writer: unclosed{c.OutOrStdout()}})
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("serve the Model Context Protocol: %w", err)
		}
		return nil
	}
	return c
}

// unclosed does not close a command's output.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// anywhere returns a function that runs an operation through the running proxy, or else on the
// files. It opens them for one call: a proxy can start at any time.
func anywhere(cfg *config.Config) func(context.Context, service.Mountable, any) (any, error) {
	var files sync.Mutex
	return func(ctx context.Context, op service.Mountable, in any) (out any, err error) {
		at, err := cli.Find(ctx, target(cfg), func(found error) (*cli.Runner, error) {
			files.Lock()
			at, err := makeMemoryFiles(ctx, cfg, found)
			if err != nil {
				files.Unlock()
				return nil, err
			}
			end := at.Close
			at.Close = func() error {
				defer files.Unlock()
				return end()
			}
			return at, nil
		})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, at.Close()) }()
		return at.Run(ctx, op, in)
	}
}
