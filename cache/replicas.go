package cache

import (
	"context"
	"embed"
	"encoding/hex"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

//go:embed *.lua
var programs embed.FS

func script(name string) *redis.Script {
	source, err := programs.ReadFile(name + ".lua")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return redis.NewScript(string(source))
}

// replicas is what the parts of a shared state have in common. What it keeps
// ends by itself, ttl after it came in.
//
//	accepted               tenants whose credentials were accepted, by the day; the last ones stay
//	block:<key>            a decision, as JSON
//	blocks:<group>         the keys of decisions that hold facts of a group
//	emptied                keys of decisions whose block was emptied, by when they end
//	floor:<scope>          the generation of a scope that was forgotten
//	forgets                what is being forgotten
//	generation             how often something was forgotten
//	link:<fingerprint>     a session
//	pending:<fingerprint>  the session of a conversation without an answer
//	proofs                 whose memory the keys and identities of registered people belong to; they stay
//	snapshot:<session>     a session's short-term memory
//	snapshots:<scope>      the keys of snapshots that hold turns of a group, or of a session
//	standing:<list>        what stands on a card, by when it was laid down; it ends after a year
//	standings:<scope>      the keys of lists with entries of a group, or of a session
type replicas struct {
	db  *redis.DB
	ttl time.Duration
}

func (r replicas) shared() bool { return true }

func named(kind string, key [16]byte) string { return redis.Key(kind, hex.EncodeToString(key[:])) }

// read calls found for those of some keys that are there.
func (r replicas) read(ctx context.Context, kind string, keys [][16]byte, found func(int, string) error) error {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = named(kind, keys[i])
	}
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		values, err := c.MGet(ctx, names...).Result()
		if err != nil {
			return err
		}
		for i, v := range values {
			if text, ok := v.(string); ok {
				if err := found(i, text); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// keysOf are the keys for a thing and the sets of its groups in which it is
// listed.
func keysOf(name, kind string, groups []string) []string {
	keys := []string{name}
	for _, g := range groups {
		keys = append(keys, redis.Key(kind, g))
	}
	return keys
}

// floorKeys are the keys of the generations of scopes.
func floorKeys(scopes []string) []string {
	keys := make([]string, len(scopes))
	for i, scope := range scopes {
		keys[i] = redis.Key("floor", scope)
	}
	return keys
}

// batch bounds what one call works on.
const batch = 500

func (r replicas) listed(ctx context.Context, kind, group string) (all []string, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		all, err = c.SMembers(ctx, redis.Key(kind, group)).Result()
		return err
	})
	return all, err
}

// members calls f for what a group's set holds, some at a time, and removes
// the set.
func (r replicas) members(ctx context.Context, kind, group string, f func([]string) error) error {
	set := redis.Key(kind, group)
	all, err := r.listed(ctx, kind, group)
	for len(all) > 0 && err == nil {
		n := min(batch, len(all))
		if err = f(all[:n]); err == nil {
			done := all[:n]
			err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error { return c.SRem(ctx, set, done).Err() })
		}
		all = all[n:]
	}
	return err
}
