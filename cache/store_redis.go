package cache

import (
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

var (
	//go:embed write.lua
	writeSource string
	//go:embed raise.lua
	raiseSource string

	writeScript = redis.NewScript(writeSource)
	raiseScript = redis.NewScript(raiseSource)
)

// replicas is the store that replicas share. A record is a key. Each scope and each list of
// a kind has a sorted set of its records by time of writing: <kind>s:<scope> and
// <kind>-list:<list>.
type replicas struct {
	db  *redis.DB
	ttl time.Duration
}

// batch bounds the keys of one call.
const batch = 500

// nameOf returns the key of a record in Redis.
func nameOf(k *kind, list string, key []byte) string {
	text := string(key)
	if k.hashed {
		text = hex.EncodeToString(key)
	}
	if list != "" {
		text = list + "\n" + text // names of lists contain no line break
	}
	return redis.Key(k.name, text)
}

// split returns the list and the key of a record from its key in Redis.
func split(k *kind, name string) (list string, key []byte, err error) {
	text := strings.TrimPrefix(name, redis.Key(k.name, ""))
	if of, rest, ok := strings.Cut(text, "\n"); ok {
		list, text = of, rest
	}
	if !k.hashed {
		return list, []byte(text), nil
	}
	if key, err = hex.DecodeString(text); err != nil {
		return "", nil, fmt.Errorf("the key %s in Redis is not the proxy's; delete it", name)
	}
	return list, key, nil
}

func scopeIndex(k *kind, scope string) string { return redis.Key(k.name+"s", scope) }
func listIndex(k *kind, list string) string   { return redis.Key(k.name+"-list", list) }

func (r replicas) get(ctx context.Context, k *kind, keys [][]byte, found func(int, []byte) error) error {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = nameOf(k, "", keys[i])
	}
	return r.values(ctx, names, found)
}

// values calls found for each name with a value, with the index of the name.
func (r replicas) values(ctx context.Context, names []string, found func(int, []byte) error) error {
	var values []any
	err := r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
		values, err = c.MGet(ctx, names...).Result()
		return err
	})
	if err != nil {
		return err
	}
	for i, v := range values {
		if text, ok := v.(string); ok {
			if err := found(i, []byte(text)); err != nil { // outside Do, so that it does not count as an error of Redis
				return err
			}
		}
	}
	return nil
}

// indexed returns the names in each of the indexes.
func (r replicas) indexed(ctx context.Context, indexes ...string) (all [][]string, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.Pipeline()
		for _, index := range indexes {
			p.ZRange(ctx, index, 0, -1)
		}
		answers, err := p.Exec(ctx)
		for _, a := range answers {
			all = append(all, a.(*redis.StringSliceCmd).Val()) //nolint:forcetypeassert // the result of ZRange
		}
		return err
	})
	return all, err
}

// each calls f for each name with a value.
func (r replicas) each(ctx context.Context, k *kind, names []string, f func(list string, key, value []byte) error) error {
	for some := range slices.Chunk(names, batch) {
		err := r.values(ctx, some, func(i int, value []byte) error {
			list, key, err := split(k, some[i])
			if err != nil {
				return err
			}
			return f(list, key, value)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r replicas) list(ctx context.Context, k *kind, lists []string, f func(string, []byte, []byte) error) error {
	indexes := make([]string, len(lists))
	for i, list := range lists {
		indexes[i] = listIndex(k, list)
	}
	all, err := r.indexed(ctx, indexes...)
	if err != nil {
		return err
	}
	return r.each(ctx, k, slices.Concat(all...), f)
}

func (r replicas) scoped(ctx context.Context, k *kind, scopes []string, f func(key, value []byte) error) error {
	indexes := make([]string, len(scopes))
	for i, scope := range scopes {
		indexes[i] = scopeIndex(k, scope)
	}
	all, err := r.indexed(ctx, indexes...)
	if err != nil {
		return err
	}
	in := make(map[string]int)
	for _, names := range all {
		for _, name := range names {
			in[name]++
		}
	}
	names := slices.DeleteFunc(all[0], func(name string) bool { return in[name] < len(scopes) })
	slices.Sort(names)
	return r.each(ctx, k, names, func(_ string, key, value []byte) error { return f(key, value) })
}

// script returns the keys and arguments of writeScript. The script does not write after
// before, a time of the server's clock; a zero before sets no deadline.
func (r replicas) script(o *record, before time.Time) (keys []string, args []any) {
	k := o.kind
	keys = make([]string, 1, 2+2*len(o.scopes))
	keys[0] = nameOf(k, o.list, o.key)
	for _, scope := range o.scopes {
		keys = append(keys, scopeIndex(k, scope))
	}
	most := -1
	if k.listed {
		most = k.most
		keys = append(keys, listIndex(k, o.list))
	}
	for _, scope := range o.scopes {
		keys = append(keys, nameOf(floorKind, "", []byte(scope)))
	}
	what, value := "set", o.value
	switch {
	case o.value == nil:
		what, value = "remove", o.was
	case o.first:
		what = "first"
	}
	deadline, event := any(""), k.event
	if !before.IsZero() {
		deadline = before.UnixMilli()
	}
	if event != "" && k.hashed {
		event += hex.EncodeToString(o.key)
	}
	now, life := time.Now(), k.lives(r.ttl)
	return keys, []any{what, value, o.refused, o.generation, now.UnixMicro(), max(now.Add(-life).UnixMicro(), 0), life.Milliseconds(),
		len(o.scopes), most, deadline, event, redis.EventStream(), redis.MaxEvents}
}

func (r replicas) keep(ctx context.Context, o *record) (kept []byte, err error) {
	if !r.db.Settled() {
		return nil, redis.ErrDown
	}
	// After the deadline the request is sent without a block. A block that was stored
	// later would change the beginning of the conversation.
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	before, err := r.db.At(ctx, deadline)
	if err != nil {
		return nil, err
	}
	keys, args := r.script(o, before)
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		text, err := writeScript.Run(ctx, c, keys, args...).Text()
		kept = []byte(text)
		return err
	})
	return kept, err
}

func (r replicas) write(ctx context.Context, records ...*record) error {
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		if len(records) == 1 {
			keys, args := r.script(records[0], time.Time{})
			return writeScript.Run(ctx, c, keys, args...).Err()
		}
		p := c.TxPipeline()
		for _, o := range records {
			r.eval(ctx, p, o)
		}
		_, err := p.Exec(ctx)
		return err
	})
}

func (r replicas) writeAsync(records ...*record) (queued bool) {
	for _, o := range records {
		r.db.Async(func(ctx context.Context, c redis.Cmdable) { r.eval(ctx, c, o) })
	}
	return true
}

// eval adds a write to a pipeline; the pipeline's Exec returns the error. It sends the
// whole script, because Run would send the hash and then react to the answer, which is
// impossible in a pipeline.
func (r replicas) eval(ctx context.Context, c redis.Cmdable, o *record) {
	keys, args := r.script(o, time.Time{})
	writeScript.Eval(ctx, c, keys, args...)
}

func (r replicas) forget(ctx context.Context, k *kind, scope string) (n int, err error) {
	all, err := r.indexed(ctx, scopeIndex(k, scope))
	if err != nil || len(all[0]) == 0 {
		return 0, err
	}
	if err := r.retract(ctx, k, all[0]); err != nil {
		return 0, err
	}
	for names := range slices.Chunk(all[0], batch) {
		ended, err := r.end(ctx, k, scope, names)
		if n += ended; err != nil {
			return n, err
		}
	}
	return n, nil
}

// retract deletes the events of records.
func (r replicas) retract(ctx context.Context, k *kind, names []string) error {
	if k.event == "" {
		return nil
	}
	meant := make(map[string]bool, len(names))
	longest := 0
	for _, name := range names {
		event := k.event + strings.TrimPrefix(name, redis.Key(k.name, ""))
		meant[event], longest = true, len(event)
	}
	return r.db.Retract(ctx, func(event string) bool { return len(event) >= longest && meant[event[:longest]] })
}

// end removes records of a forgotten scope or reduces them to their rest, and returns the
// number of counted ones.
func (r replicas) end(ctx context.Context, k *kind, scope string, names []string) (n int, err error) {
	values := make(map[string][]byte, len(names))
	err = r.values(ctx, names, func(i int, value []byte) error { values[names[i]] = value; return nil })
	if err != nil {
		return 0, err
	}
	now, life := time.Now(), k.lives(r.ttl)
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.TxPipeline()
		for _, name := range names {
			p.ZRem(ctx, scopeIndex(k, scope), name)
			value, there := values[name]
			switch {
			case !there:
			case k.rest == nil:
				n++
				p.Del(ctx, name)
				if list, _, _ := split(k, name); k.listed {
					p.ZRem(ctx, listIndex(k, list), name)
				}
			default:
				rest, counted := k.rest(value)
				if len(rest) < len(value) {
					p.SetArgs(ctx, name, rest, redis.SetArgs{Mode: "XX", KeepTTL: true})
				}
				if counted {
					n++
					p.ZAdd(ctx, scopeIndex(k, emptiedScope), redis.Z{Score: float64(now.UnixMicro()), Member: name})
				}
			}
		}
		if k.rest != nil {
			p.ZRemRangeByScore(ctx, scopeIndex(k, emptiedScope), "-inf", fmt.Sprint(now.Add(-life).UnixMicro()))
			p.PExpire(ctx, scopeIndex(k, emptiedScope), life)
		}
		_, err := p.Exec(ctx)
		if errors.Is(err, redis.Nil) { // a record has expired meanwhile
			return nil
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (r replicas) raise(ctx context.Context, o *record, seen int64, scopes []string) (number int64, err error) {
	keys := []string{nameOf(generationKind, "", []byte(generationKey)), nameOf(o.kind, "", o.key), listIndex(o.kind, ""), listIndex(floorKind, "")}
	for _, scope := range scopes {
		keys = append(keys, nameOf(floorKind, "", []byte(scope)))
	}
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
		number, err = raiseScript.Run(ctx, c, keys, seen, o.value, time.Now().UnixMicro(), floorKind.lives(r.ttl).Milliseconds()).Int64()
		return err
	})
	if err != nil {
		return 0, err
	}
	return number, r.announce(ctx, EventGeneration)
}

func (r replicas) announce(ctx context.Context, event string) error {
	if err := r.db.Announce(ctx, event); err != nil {
		return fmt.Errorf("tell the other replicas: %w", err)
	}
	return nil
}
