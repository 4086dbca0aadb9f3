package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
)

func newDemoCommand() *cobra.Command {
	c := described("demo")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return cli.RunDemo(c.OutOrStdout(), startDemo)
	}
	return c
}

// startDemo starts a proxy in a directory. The environment and files do not affect its
// settings.
func startDemo(dir, upstream string) (*cli.DemoProxy, error) {
	cfg, err := config.Load(config.Sources{Env: []string{"HOME=" + dir}, Flags: map[string]string{
		"listen": "127.0.0.1:0", "admin.listen": "off", "data_dir": dir, "upstream.openai": upstream, "upstream.anthropic": upstream,
		"recall.timeout": "1m", // on any machine: the demonstration has a timeout of its own
	}})
	if err != nil {
		return nil, err
	}
	a, err := newApp(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	// Ends with Stop.
	go func() { served <- a.Serve() }()
	return &cli.DemoProxy{
		URL:       "http://" + a.proxy.Addr().String(),
		Delivered: func() int { return a.memory().queue().Delivered },
		Stop:      func(ctx context.Context) error { return errors.Join(a.Shutdown(ctx), <-served) },
	}, nil
}
