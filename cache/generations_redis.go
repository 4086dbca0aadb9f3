package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

var raiseScript, endScript = script("generation_raise"), script("generation_end")

// generationRedis keeps generations where replicas share them. Line breaks
// separate names in a field and its value; no name has one.
type generationRedis struct{ replicas }

func (r generationRedis) read(ctx context.Context) (number int64, under []Forget, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.TxPipeline()
		counted, listed := p.Get(ctx, redis.Key("generation")), p.HGetAll(ctx, redis.Key("forgets"))
		if _, err := p.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		number = 1
		if n, err := counted.Int64(); err == nil {
			number = n
		}
		for field, value := range listed.Val() {
			f, err := parseForget(field, value)
			if err != nil {
				return err
			}
			under = append(under, f)
		}
		return nil
	})
	slices.SortFunc(under, func(a, b Forget) int { return strings.Compare(a.field(), b.field()) })
	return number, under, err
}

func (f Forget) field() string { return f.Group + "\n" + f.Scope }

func parseForget(field, value string) (f Forget, err error) {
	f.Group, f.Scope, _ = strings.Cut(field, "\n")
	parts := strings.Split(value, "\n")
	if len(parts) != 4 {
		return f, fmt.Errorf("what is to be forgotten of %s cannot be read", f.Group)
	}
	f.Session, f.Owner, f.Emptied = parts[1], parts[2], parts[3] == "1"
	if f.Generation, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
		return f, fmt.Errorf("what is to be forgotten of %s: %w", f.Group, err)
	}
	return f, nil
}

func (r generationRedis) raise(ctx context.Context, f Forget, seen int64, scopes []string) (number int64, err error) {
	keys := append([]string{redis.Key("generation"), redis.Key("forgets")}, floorKeys(scopes)...)
	emptied := "0"
	if f.Emptied {
		emptied = "1"
	}
	rest := "\n" + strings.Join([]string{f.Session, f.Owner, emptied}, "\n")
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
		number, err = raiseScript.Run(ctx, c, keys, seen, f.field(), rest, max(r.ttl, floorsFor).Milliseconds()).Int64()
		return err
	})
	if err != nil {
		return 0, err
	}
	return number, r.announce(ctx)
}

// announce publishes that the forgets under way have changed, and returns when
// every replica has read them.
func (r generationRedis) announce(ctx context.Context) error {
	if err := r.db.Announce(ctx, EventGeneration); err != nil {
		return fmt.Errorf("tell the other replicas: %w", err)
	}
	return nil
}

func (r generationRedis) end(ctx context.Context, f Forget) error {
	_, under, err := r.read(ctx)
	if err != nil {
		return err
	}
	var gone []string
	for _, o := range under {
		if o.Group == f.Group && o.Generation <= f.Generation && (o.Scope == f.Scope || f.Scope == f.Group) {
			gone = append(gone, o.field())
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := r.announce(ctx); err != nil { // a replica that does not know may still show it
		return err
	}
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		args := []any{f.Generation}
		for _, field := range gone {
			args = append(args, field)
		}
		if err := endScript.Run(ctx, c, []string{redis.Key("forgets")}, args...).Err(); err != nil {
			return err
		}
		return redis.Publish(ctx, c, EventGeneration).Err()
	})
}

// floors returns none: every write reads the generations of its scopes in Redis.
func (r generationRedis) floors(context.Context) (map[string]int64, error) { return nil, nil }
