package cache

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// Tombstone is a group that was to be forgotten, or something in it, until it is
// proven to be gone.
type Tombstone struct {
	Group string
	Mark  string // what was to be forgotten: the group, or a session in it
}

// Tombstones say of which groups nothing may be shown. They outlive the process.
// It is safe for concurrent use.
type Tombstones struct {
	store store

	mu     sync.RWMutex // guards the rest
	known  bool         // whether groups is what the store has
	groups map[string]bool
	reads  int // that have begun
	newest int // of those that have ended, the one that began last
}

// readTime bounds what a request waits for the store where it is not known which
// groups have a tombstone.
const readTime = 100 * time.Millisecond

// Has reports whether a group has a tombstone. Where that cannot be known it has.
func (t *Tombstones) Has(group string) bool {
	t.mu.RLock()
	known, has := t.known, t.groups[group]
	t.mu.RUnlock()
	if known {
		return has
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	groups, err := t.Groups(ctx)
	return err != nil || slices.Contains(groups, group)
}

// Known is which groups have a tombstone, as it was read last.
func (t *Tombstones) Known() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.groups))
}

// Groups reads which groups have a tombstone.
func (t *Tombstones) Groups(ctx context.Context) (list []string, err error) {
	t.mu.Lock()
	t.reads++
	read := t.reads
	t.mu.Unlock()
	all, err := t.store.readTombstones(ctx)
	groups := make(map[string]bool, len(all))
	for _, s := range all {
		if !groups[s.Group] {
			groups[s.Group] = true
			list = append(list, s.Group)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if read > t.newest { // else it may not show what a later one did
		t.newest, t.known = read, err == nil
		if err == nil {
			t.groups = groups
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read tombstones: %w", err)
	}
	return list, nil
}

// Set stores a tombstone.
func (t *Tombstones) Set(ctx context.Context, s Tombstone) error {
	if err := t.store.setTombstone(ctx, s); err != nil {
		return fmt.Errorf("store tombstone: %w", err)
	}
	_, err := t.Groups(ctx)
	return err
}

// Clear removes a tombstone; that of a whole group removes all of the group.
func (t *Tombstones) Clear(ctx context.Context, s Tombstone) error {
	if err := t.store.clearTombstone(ctx, s); err != nil {
		return fmt.Errorf("remove tombstone: %w", err)
	}
	_, err := t.Groups(ctx)
	return err
}

func (f *file) readTombstones(ctx context.Context) (list []Tombstone, err error) {
	rows, err := f.db.Query(ctx, "SELECT grp, mark FROM tombstones ORDER BY grp, mark")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s Tombstone
		if err := rows.Scan(&s.Group, &s.Mark); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

func (f *file) setTombstone(ctx context.Context, s Tombstone) error {
	return f.db.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO tombstones VALUES (?, ?) ON CONFLICT DO NOTHING", s.Group, s.Mark)
		return err
	})
}

func (f *file) clearTombstone(ctx context.Context, s Tombstone) error {
	return f.db.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := tx.Exec("DELETE FROM tombstones WHERE grp = ?1 AND (mark = ?2 OR ?1 = ?2)", s.Group, s.Mark)
		return err
	})
}

// NewsOfTombstones says that tombstones have changed.
const NewsOfTombstones = "tombstones"

func (s Tombstone) field() string { return s.Group + "\n" + s.Mark }

func (r *replicas) readTombstones(ctx context.Context) (list []Tombstone, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		fields, err := c.SMembers(ctx, redis.Key("tombstones")).Result()
		slices.Sort(fields)
		for _, f := range fields {
			var s Tombstone
			s.Group, s.Mark, _ = strings.Cut(f, "\n")
			list = append(list, s)
		}
		return err
	})
	return list, err
}

func (r *replicas) setTombstone(ctx context.Context, s Tombstone) error {
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		if err := c.SAdd(ctx, redis.Key("tombstones"), s.field()).Err(); err != nil {
			return err
		}
		return redis.Tell(ctx, c, News, NewsOfTombstones)
	})
}

func (r *replicas) clearTombstone(ctx context.Context, s Tombstone) error {
	all, err := r.readTombstones(ctx)
	if err != nil {
		return err
	}
	gone := []any{s.field()}
	for _, o := range all {
		if o.Group == s.Group && s.Mark == s.Group {
			gone = append(gone, o.field())
		}
	}
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		if err := c.SRem(ctx, redis.Key("tombstones"), gone...).Err(); err != nil {
			return err
		}
		return redis.Tell(ctx, c, News, NewsOfTombstones)
	})
}
