package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"time"
)

// CheckRemedy is the remedy for an error of Check.
const CheckRemedy = "start Redis, or correct state.redis_url; the user needs to read and write keys, streams and scripts"

// Check tests the server at a URL: it writes a key and deletes it again.
func Check(ctx context.Context, url string) error {
	db, err := Open(url, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	key := Key("check", rand.Text())
	err = db.Do(ctx, func(ctx context.Context, c Cmdable) error {
		if err := c.Set(ctx, key, "1", time.Minute).Err(); err != nil {
			return err
		}
		return c.Del(ctx, key).Err()
	})
	return errors.Join(err, db.Close())
}

// Advise logs a warning for each setting of the server that may lose keys.
func (d *DB) Advise(log *slog.Logger) {
	set := make(map[string]string)
	err := d.Do(context.Background(), func(ctx context.Context, c Cmdable) error {
		info, err := c.Info(ctx, "memory", "persistence").Result()
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			set[name] = value
		}
		return err
	})
	if err != nil {
		return // Do has logged it
	}
	if policy := set["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		log.Warn("redis evicts keys when its memory is full, including queued turns and blocks of running conversations; set maxmemory-policy to noeviction", "policy", policy)
	}
	if set["aof_enabled"] == "0" {
		log.Warn("redis has no append-only file, so a crash loses all writes since its last snapshot; set appendonly to yes")
	}
}
