package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/datadir"
)

// unreachable says that the proxy of a data directory cannot be asked, and why
// its files are not used without it.
func unreachable(cfg *config.Config, found error) error {
	if pid, _ := datadir.Holder(cfg.DataDir); pid > 0 {
		return fmt.Errorf("a proxy (process %d) runs on %s, and its admin side cannot be found; name its admin.listen: %w", pid, cfg.DataDir, found)
	}
	return fmt.Errorf("a proxy runs on %s, and its admin side cannot be found; name its admin.listen: %w", cfg.DataDir, found)
}

// reach finds the proxy that a command about memory talks to: the one that
// runs, else one of its own, on the same files, for as long as the command
// takes. The configuration that it returns names it.
func reach(ctx context.Context, cfg *config.Config) (*config.Config, func() error, error) {
	at, found := findOwner(ctx, cfg)
	if found == nil || byAddress(cfg) || !errors.Is(found, errNoProxy) {
		return at, func() error { return nil }, found
	}
	own := *cfg
	own.Listen, own.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	// What it would say of itself is not what was asked for.
	a, err := newApp(&own, slog.New(slog.DiscardHandler))
	if errors.Is(err, datadir.ErrInUse) {
		return nil, nil, unreachable(cfg, found)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := a.files.broken; err != nil {
		return nil, nil, errors.Join(datadir.Each(err)[0], a.Shutdown(ctx))
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
