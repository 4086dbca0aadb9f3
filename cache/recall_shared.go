package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

// sharedEntry is what a search found, as replicas share it. It is of use while
// its group is of the same generation.
type sharedEntry[V any] struct {
	Generation string `json:"g"`
	Value      V      `json:"v"`
}

func sharedName(group, query string) string {
	sum := sha256.Sum256([]byte(group + "\x00" + query))
	return redis.Key("recall", hex.EncodeToString(sum[:16]))
}

// generationLife is how long the generation of a group is known in which nothing
// changes; longer than searches take, and what they found is kept.
const generationLife = 24 * time.Hour

func generationName(group string) string { return redis.Key("generation", group) }

// Fetch returns what another replica found lately, where that is shared, and
// the generation of the group, for a search that begins now: as this process
// counts it and, where it is known, as all replicas do, a slash between.
func (r *Recall[V]) Fetch(ctx context.Context, group, query string) (v V, found bool, generation string) {
	here := strconv.FormatUint(uint64(r.generation(group).Load()), 10)
	if r.o.Shared == nil {
		return v, false, here
	}
	err := r.o.Shared.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		values, err := c.MGet(ctx, generationName(group), sharedName(group, query)).Result()
		if err != nil {
			return err
		}
		generation = "0"
		if g, ok := values[0].(string); ok {
			generation = g
		}
		var e sharedEntry[V]
		if body, ok := values[1].(string); ok && json.Unmarshal([]byte(body), &e) == nil && e.Generation == generation {
			v, found = e.Value, true
		}
		return nil
	})
	if err != nil {
		return v, false, here
	}
	return v, found, here + "/" + generation
}

// Share tells other replicas what a search found that began when its group was
// of that generation. It does not wait.
func (r *Recall[V]) Share(group, query, generation string, v V, empty bool) {
	_, everywhere, ok := strings.Cut(generation, "/")
	if r.o.Shared == nil || !ok {
		return
	}
	body, err := json.Marshal(sharedEntry[V]{everywhere, v})
	if err != nil {
		return
	}
	life := r.o.Fresh
	if empty {
		life /= 10
	}
	r.o.Shared.Later(func(ctx context.Context, c redis.Cmdable) {
		name, list, now := sharedName(group, query), redis.Key("recalls", group), time.Now()
		// First: what is not listed cannot be forgotten.
		c.ZAdd(ctx, list, goredis.Z{Score: float64(now.Add(life).UnixMilli()), Member: name})
		c.ZRemRangeByScore(ctx, list, "-inf", strconv.FormatInt(now.UnixMilli(), 10))
		c.PExpire(ctx, list, r.o.Fresh)
		c.Set(ctx, name, body, life)
	})
}

// Forget is DropGroup, after which what was found is nowhere.
func (r *Recall[V]) Forget(group string) error {
	r.DropGroup(group)
	if r.o.Shared == nil {
		return nil
	}
	err := r.o.Shared.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
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

func (r *Recall[V]) tellDropped(group string) {
	if r.o.Shared == nil {
		return
	}
	// Should it fail, what others keep ends by itself before long.
	_ = r.o.Shared.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
		if err := c.Incr(ctx, generationName(group)).Err(); err != nil {
			return err
		}
		if err := c.Expire(ctx, generationName(group), generationLife+10*r.o.Fresh).Err(); err != nil {
			return err
		}
		return redis.Tell(ctx, c, News, newsOfDrop+group)
	})
}
