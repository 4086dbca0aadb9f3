package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

var shareScript = script("recall_share")

// sharedEntry is what a search found, as replicas share it. It is of use while
// its group is of the same version.
type sharedEntry[V any] struct {
	Version string `json:"g"`
	Value   V      `json:"v"`
	Empty   bool   `json:"e,omitempty"` // nothing was found
}

func sharedName(group, query string, generation int64) string {
	sum := sha256.Sum256([]byte(strconv.FormatInt(generation, 10) + group + "\x00" + query))
	return redis.Key("recall", hex.EncodeToString(sum[:16]))
}

// versionLife is how long the version of a group is known in which nothing
// changes; longer than searches take, and what they found is kept.
const versionLife = 24 * time.Hour

func versionName(group string) string { return redis.Key("version", group) }

// Fetch returns and keeps what another replica has found, where that is shared,
// and returns the version of the group, for a search that begins now: as this process counts it
// and, where it is known, as all replicas do, a slash between.
func (r *Recall[V]) Fetch(ctx context.Context, group, query string, generation int64) (v V, found bool, version string) {
	here := strconv.FormatUint(uint64(r.version(group).Load()), 10)
	if r.o.Shared == nil {
		return v, false, here
	}
	err := r.o.Shared.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		values, err := c.MGet(ctx, versionName(group), sharedName(group, query, generation)).Result()
		if err != nil {
			return err
		}
		version = "0"
		if n, ok := values[0].(string); ok {
			version = n
		}
		var e sharedEntry[V]
		if body, ok := values[1].(string); ok && json.Unmarshal([]byte(body), &e) == nil && e.Version == version {
			v, found = e.Value, true
			r.keep(group, query, generation, here, v, len(body), e.Empty)
		}
		return nil
	})
	if err != nil {
		return v, false, here
	}
	return v, found, here + "/" + version
}

// share gives other replicas what a search found. It does not wait.
func (r *Recall[V]) share(group, query string, generation int64, version string, v V, empty bool) {
	body, err := json.Marshal(sharedEntry[V]{version, v, empty})
	if err != nil {
		return
	}
	life := r.o.Fresh
	if empty {
		life /= 10
	}
	keys := []string{sharedName(group, query, generation), redis.Key("recalls", group), redis.Key("floor", factsOf(group))}
	r.o.Shared.Later(func(ctx context.Context, c redis.Cmdable) {
		shareScript.Eval(ctx, c, keys, body, generation, life.Milliseconds(), r.o.Fresh.Milliseconds(), time.Now().UnixMilli())
	})
}

// Forget removes what replicas share of what was found in a group. What this
// process has found is not shown any more, and goes when there is no room.
func (r *Recall[V]) Forget(ctx context.Context, group string) error {
	r.DropGroup(group)
	if r.o.Shared == nil {
		return nil
	}
	err := r.o.Shared.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		list := redis.Key("recalls", group)
		names, err := c.ZRange(ctx, list, 0, -1).Result()
		if err != nil {
			return err
		}
		return c.Del(ctx, append(names, list)...).Err()
	})
	if err != nil {
		return fmt.Errorf("empty the recall cache: %w", err)
	}
	return nil
}

func (r *Recall[V]) publishDrop(group string) {
	if r.o.Shared == nil {
		return
	}
	// Should it fail, what others keep ends by itself before long.
	_ = r.o.Shared.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
		if err := c.Incr(ctx, versionName(group)).Err(); err != nil {
			return err
		}
		if err := c.Expire(ctx, versionName(group), versionLife+10*r.o.Fresh).Err(); err != nil {
			return err
		}
		return redis.Publish(ctx, c, eventDrop+group).Err()
	})
}
