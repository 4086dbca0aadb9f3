package cache

import (
	"context"
	"errors"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

var saveScript = script("snapshot_save")

// snapshotRedis keeps snapshots where replicas share them.
type snapshotRedis struct{ replicas }

func (r snapshotRedis) readSnapshot(ctx context.Context, session string) (body []byte, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		body, err = c.Get(ctx, redis.Key("snapshot", session)).Bytes()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	return body, err
}

func (r snapshotRedis) saveSnapshotLater(session string, body []byte, generation int64, scopes []string) {
	keys := append(keysOf(redis.Key("snapshot", session), "snapshots", scopes), floorKeys(scopes)...)
	// As a whole: what stands in a queue of calls cannot be sent once more.
	r.db.Later(func(ctx context.Context, c redis.Cmdable) {
		saveScript.Eval(ctx, c, keys, body, generation, r.ttl.Milliseconds())
	})
}

func (r snapshotRedis) eachSnapshot(ctx context.Context, scopes []string, f func(string, []byte) error) error {
	sets := make([]string, len(scopes))
	for i, m := range scopes {
		sets[i] = redis.Key("snapshots", m)
	}
	var all []string
	err := r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
		all, err = c.SInter(ctx, sets...).Result()
		return err
	})
	for _, name := range all {
		var body []byte
		if err == nil {
			err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
				body, err = c.Get(ctx, name).Bytes()
				if errors.Is(err, redis.Nil) {
					return nil
				}
				return err
			})
		}
		if err == nil && body != nil {
			err = f(strings.TrimPrefix(name, redis.Key("snapshot", "")), body)
		}
	}
	return err
}

func (r snapshotRedis) forgetSnapshots(ctx context.Context, scope string) error {
	return r.members(ctx, "snapshots", scope, func(keys []string) error {
		return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error { return c.Del(ctx, keys...).Err() })
	})
}
