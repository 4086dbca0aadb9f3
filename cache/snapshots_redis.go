package cache

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

var (
	saveScript = script("snapshot_save")
	addScript  = script("standing_add")
)

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

func (r snapshotRedis) saveSnapshotAsync(session string, body []byte, generation int64, scopes []string) {
	keys := append(keysOf(redis.Key("snapshot", session), "snapshots", scopes), floorKeys(scopes)...)
	// Eval sends the whole script. Run would send its hash first and the script
	// after a refusal, which a pipeline cannot.
	r.db.Async(func(ctx context.Context, c redis.Cmdable) {
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
	slices.Sort(all)
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
	err := r.members(ctx, "snapshots", scope, func(keys []string) error {
		return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error { return c.Del(ctx, keys...).Err() })
	})
	if err != nil {
		return err
	}
	return r.members(ctx, "standings", scope, func(lists []string) error {
		for _, list := range lists {
			if err := r.forgetStanding(ctx, list, scope); err != nil {
				return err
			}
		}
		return nil
	})
}

// forgetStanding removes the entries of a list that have a scope.
func (r snapshotRedis) forgetStanding(ctx context.Context, list, scope string) error {
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		all, err := c.ZRange(ctx, list, 0, -1).Result()
		for _, entry := range all {
			if scopes, _, _ := strings.Cut(entry, "\n"); err == nil && strings.Contains(scopes, listed([]string{scope})) {
				err = c.ZRem(ctx, list, entry).Err()
			}
		}
		return err
	})
}

// readStanding cuts the first line of each entry: its scopes.
func (r snapshotRedis) readStanding(ctx context.Context, lists []string, f func(string, []byte)) error {
	for _, list := range lists {
		var all []string
		err := r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
			all, err = c.ZRevRange(ctx, redis.Key("standing", list), 0, -1).Result()
			return err
		})
		if err != nil {
			return err
		}
		for _, entry := range all {
			_, body, _ := strings.Cut(entry, "\n")
			f(list, []byte(body))
		}
	}
	return nil
}

func (r snapshotRedis) addStanding(ctx context.Context, list string, entry []byte, generation int64, scopes []string) error {
	keys := append(keysOf(redis.Key("standing", list), "standings", scopes), floorKeys(scopes)...)
	value, at := listed(scopes)+"\n"+string(entry), time.Now().UnixMicro()
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		return addScript.Eval(ctx, c, keys, value, generation, at, standingMax, standingFor.Milliseconds()).Err()
	})
}
