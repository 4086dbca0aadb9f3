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

// replicas is what the parts of a state in Redis have in common. A key expires ttl
// after it was last set, unless its line here says otherwise.
//
//	accepted               tenants whose credentials were accepted, by the day; the newest 100,000 stay
//	block:<key>            a decision, as JSON
//	blocks:<group>         the keys of decisions that hold facts of a group
//	emptied                keys of decisions whose block was removed, by when they expire
//	floor:<scope>          the generation of a scope that was forgotten
//	forgets                the forgets under way; they stay until they end
//	generation             how many forgets there were; it stays
//	link:<fingerprint>     a session
//	pending:<fingerprint>  the session of a conversation without an answer
//	proofs                 whose memory the keys and identities of registered people belong to; they stay
//	snapshot:<session>     a session's short-term memory
//	snapshots:<scope>      the keys of snapshots that hold turns of a group, or of a session
//	standing:<list>        the entries of a card, by when they were added; it expires a year after the last
//	standings:<scope>      the keys of lists with entries of a group, or of a session
type replicas struct {
	db  *redis.DB
	ttl time.Duration
}

func (r replicas) shared() bool { return true }

func named(kind string, key [16]byte) string { return redis.Key(kind, hex.EncodeToString(key[:])) }

// read calls found for each key that is there, with its index.
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

// keysOf returns a name, and the keys of the sets that list it: one of each group.
func keysOf(name, kind string, groups []string) []string {
	keys := []string{name}
	for _, g := range groups {
		keys = append(keys, redis.Key(kind, g))
	}
	return keys
}

// floorKeys returns the keys of the generations of scopes.
func floorKeys(scopes []string) []string {
	keys := make([]string, len(scopes))
	for i, scope := range scopes {
		keys[i] = redis.Key("floor", scope)
	}
	return keys
}

// batch bounds the keys of one call.
const batch = 500

// listed returns the names in the set of a group.
func (r replicas) listed(ctx context.Context, kind, group string) (all []string, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		all, err = c.SMembers(ctx, redis.Key(kind, group)).Result()
		return err
	})
	return all, err
}

// members calls f with the names in the set of a group, up to batch at a time, and
// removes from the set those for which f returned nil. It ends with the first error.
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
