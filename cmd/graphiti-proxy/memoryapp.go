package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// reach finds the proxy that a command about memory talks to: the one that
// runs, else one of its own, on the same files, for as long as the command
// takes. The configuration that it returns names it.
func reach(ctx context.Context, cfg *config.Config) (*config.Config, func() error, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	var health map[string]any
	err := ask(ctx, cfg, http.MethodGet, "/api/v1/status", nil, &health)
	if err == nil || cfg.Admin.Listen != "off" && !errors.Is(err, errNoProxy) {
		return cfg, func() error { return nil }, err
	}
	own := *cfg
	own.Listen, own.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	// What it would say of itself is not what was asked for.
	a, err := newApp(&own, slog.New(slog.DiscardHandler))
	if errors.Is(err, errInUse) {
		return nil, nil, fmt.Errorf("a proxy runs on %s, and its admin side does not answer on %s; name its admin.listen", cfg.DataDir, cfg.Admin.Listen)
	}
	if err != nil {
		return nil, nil, err
	}
	served := make(chan error, 1)
	// Ends with Shutdown below.
	go func() { served <- a.Serve() }()
	own.Admin.Listen = a.admin.Addr().String()
	return &own, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return errors.Join(a.Shutdown(ctx), <-served)
	}, nil
}
