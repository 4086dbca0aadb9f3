package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
)

// openState opens where blocks and sessions are kept.
func (a *app) openState() (*cache.State, error) {
	cfg := a.cfg
	if cfg.State.Backend != "redis" {
		state, err := cache.OpenState(filepath.Join(cfg.DataDir, "state.db"), cfg.Recall.StickyTTL)
		if err != nil {
			return nil, err
		}
		a.OnClose("state", func(context.Context) error { return state.Close() })
		return state, nil
	}
	db, err := openRedis(cfg, a.quiet)
	if err != nil {
		return nil, err
	}
	a.shared = db
	var advice sync.WaitGroup
	advice.Go(func() { db.Advise(a.log) }) // ends with its one call
	a.OnClose("shared state", func(context.Context) error {
		defer advice.Wait()
		return db.Close()
	})
	return cache.Share(db, cfg.Recall.StickyTTL), nil
}

func openRedis(cfg *config.Config, log *slog.Logger) (*redis.DB, error) {
	db, err := redis.Open(cfg.State.RedisURL, log)
	if err != nil {
		return nil, fmt.Errorf("state.redis_url: %w", err)
	}
	return db, nil
}

// sharedQueue is what the pipelines of all replicas share; nil: there are no
// replicas.
func (a *app) sharedQueue() *capture.Shared {
	if a.shared == nil {
		return nil
	}
	return &capture.Shared{DB: a.shared, Name: telemetry.ProcessName()}
}
