package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
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
	advice.Go(a.adviseRedis) // ends with its one call
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

// checkRedis writes to what replicas share, and reads it again.
func checkRedis(ctx context.Context, cfg *config.Config) remote.Check {
	check := remote.Check{Name: "redis", Remedy: "start Redis, or correct state.redis_url; the user needs to read and write keys, streams and scripts"}
	began := time.Now()
	db, err := openRedis(cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		key := redis.Key("check", rand.Text())
		err = db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
			if err := c.Set(ctx, key, "1", time.Minute).Err(); err != nil {
				return err
			}
			return c.Del(ctx, key).Err()
		})
		err = errors.Join(err, db.Close())
	}
	check.Took, check.OK = time.Since(began), err == nil
	if err != nil {
		check.Detail = err.Error()
	}
	return check
}

// adviseRedis says what a server is set up to lose.
func (a *app) adviseRedis() {
	var policy, appends string
	err := a.shared.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
		info, err := c.Info(ctx, "memory", "persistence").Result()
		for line := range strings.Lines(info) {
			switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
			case "maxmemory_policy":
				policy = value
			case "aof_enabled":
				appends = value
			}
		}
		return err
	})
	if err != nil {
		return // which is logged
	}
	if policy != "" && policy != "noeviction" {
		a.log.Warn("redis removes what it has no room for, which may be turns that wait and blocks that conversations need; set maxmemory-policy to noeviction", "policy", policy)
	}
	if appends == "0" {
		a.log.Warn("redis keeps no log of what is written: what came in since its last snapshot is lost when it ends; set appendonly to yes")
	}
}

// team is what the pipeline shares with those of other replicas; nil: it is
// alone.
func (a *app) team() *capture.Shared {
	if a.shared == nil {
		return nil
	}
	return &capture.Shared{DB: a.shared, Name: processName()}
}

// processName tells this process from others, for people.
func processName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "a replica"
	}
	return fmt.Sprintf("%s/%d", name, os.Getpid())
}
