package cache

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

var keepScript, emptyScript = script("decision_keep"), script("decision_empty")

// decisionRedis keeps decisions where replicas share them, as JSON.
type decisionRedis struct{ replicas }

func (r decisionRedis) read(ctx context.Context, keys [][16]byte, found func(int, *inject.Decision)) error {
	return r.replicas.read(ctx, "block", keys, func(i int, text string) error {
		d, err := parseDecision(text)
		if err == nil {
			found(i, d)
		}
		return err
	})
}

func parseDecision(text string) (*inject.Decision, error) {
	d := &inject.Decision{}
	if err := json.Unmarshal([]byte(text), d); err != nil {
		return nil, fmt.Errorf("read decision: %w", err)
	}
	return d, nil
}

func (r decisionRedis) keep(ctx context.Context, key [16]byte, d inject.Decision, groups, scopes []string) (kept *inject.Decision, err error) {
	if !r.db.Settled() {
		return nil, redis.ErrDown
	}
	// After the deadline the request leaves without a block. A block that is
	// stored after that would change the beginning of the conversation.
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	before, err := r.db.At(ctx, deadline)
	if err != nil {
		return nil, err
	}
	var args []any
	for _, d := range []inject.Decision{d, withoutBlock(d)} {
		body, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		args = append(args, string(body), eventDecision+hex.EncodeToString(key[:])+string(body))
	}
	args = append(args, d.Generation, r.ttl.Milliseconds(), redis.EventStream(), redis.MaxEvents, before.UnixMilli())
	keys := append(keysOf(named("block", key), "blocks", groups), floorKeys(scopes)...)
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		text, err := keepScript.Run(ctx, c, keys, args...).Text()
		if err == nil {
			kept, err = parseDecision(text)
		}
		return err
	})
	return kept, err
}

func (r decisionRedis) empty(ctx context.Context, group string) (n int, err error) {
	listed, err := r.listed(ctx, "blocks", group)
	if err != nil || len(listed) == 0 {
		return 0, err
	}
	if err := r.retract(ctx, listed); err != nil {
		return 0, err
	}
	err = r.members(ctx, "blocks", group, func(keys []string) error {
		emptied, err := r.emptyAll(ctx, keys)
		n += emptied
		return err
	})
	return n, err
}

func (r decisionRedis) emptyAll(ctx context.Context, keys []string) (n int, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		n, err = emptyScript.Run(ctx, c, append([]string{redis.Key("emptied")}, keys...), time.Now().UnixMilli()).Int()
		return err
	})
	return n, err
}

// retract deletes the events about decisions.
func (r decisionRedis) retract(ctx context.Context, blocks []string) error {
	meant := make(map[string]bool, len(blocks))
	for _, name := range blocks {
		meant[eventDecision+strings.TrimPrefix(name, redis.Key("block", ""))] = true
	}
	return r.db.Retract(ctx, func(event string) bool {
		n := len(eventDecision) + 2*len([16]byte{})
		return len(event) >= n && meant[event[:n]]
	})
}

func (r decisionRedis) countEmptied(ctx context.Context) (n int, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		if err := c.ZRemRangeByScore(ctx, redis.Key("emptied"), "-inf", fmt.Sprint(time.Now().UnixMilli())).Err(); err != nil {
			return err
		}
		all, err := c.ZCard(ctx, redis.Key("emptied")).Result()
		n = int(all)
		return err
	})
	return n, err
}
