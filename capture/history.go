package capture

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// cutPrefix begins the ids under which it is noted, among the turns that groups
// have had, that an answer came to no clean end.
const cutPrefix = "cut:"

// CutOff notes that the answer of a turn was cut off, failed, or was withheld:
// what a history shows of it is not kept, not after a restart either. A turn
// that is answered again is kept all the same.
func (p *Pipeline) CutOff(ctx context.Context, t Turn) error {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return ErrStopped
	}
	t.User, t.Assistant = p.Redacted(t.User), p.Redacted(t.Assistant) // as what is kept is compared
	err := p.spool.cutOff(ctx, &t, time.Now())
	if err != nil && p.team != nil && ctx.Err() == nil {
		return p.team.local.cutOff(ctx, &t, time.Now())
	}
	return err
}

func (s *spool) cutOff(ctx context.Context, t *Turn, now time.Time) error {
	said := t.said()
	err := s.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, target := range t.Targets {
			_, err := tx.Exec("INSERT INTO seen (turn, grp, at, said) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at, said = excluded.said",
				cutPrefix+t.ID, target.Group, now.Unix(), said)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note an answer that was cut off: %w", err)
	}
	return nil
}

func (s *shared) cutOff(ctx context.Context, t *Turn, _ time.Time) error {
	var list []cut
	for _, target := range t.Targets {
		list = append(list, cut{cutPrefix + t.ID, target.Group, t.said()})
	}
	return s.noteCut(ctx, list)
}

// cut is what is noted of an answer that came to no clean end.
type cut struct{ id, group, said string }

func (s *shared) noteCut(ctx context.Context, list []cut) error {
	if len(list) == 0 {
		return nil
	}
	err := s.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.Pipeline()
		for _, n := range list {
			p.Set(ctx, redis.Key("turn", n.id, n.group), "0:"+n.said, seenFor)
			p.SetNX(ctx, redis.Key("said", n.group, n.said), "0", seenFor)
		}
		_, err := p.Exec(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("note an answer that was cut off: %w", err)
	}
	return nil
}

// bringCut tells the others what was noted here.
func (p *Pipeline) bringCut(ctx context.Context) error {
	for {
		var list []cut
		err := each(ctx, p.team.local.db, "SELECT turn, grp, said FROM seen WHERE turn >= ? AND turn < ? LIMIT ?", []any{cutPrefix, "cut;", page},
			func(scan func(...any) error) error {
				var n cut
				err := scan(&n.id, &n.group, &n.said)
				list = append(list, n)
				return err
			})
		if err != nil || len(list) == 0 {
			return err
		}
		if err := p.team.spool.noteCut(ctx, list); err != nil {
			return err
		}
		err = p.team.local.write("note hand-over", func(tx *sqlite.Tx) error {
			for _, n := range list {
				if _, err := tx.Exec("DELETE FROM seen WHERE turn = ? AND grp = ?", n.id, n.group); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// whole says of each turn whether all of its groups have all of it.
func (s *spool) whole(ctx context.Context, turns []Turn) ([]bool, error) {
	out := make([]bool, len(turns))
	for i := range turns {
		all := len(turns[i].Targets) > 0
		for _, target := range turns[i].Targets {
			if !all {
				break
			}
			err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM spool WHERE turn = ?1 AND grp = ?2 AND open = 0)
				OR EXISTS (SELECT 1 FROM seen WHERE turn = ?1 AND grp = ?2 AND open = 0)`, []any{turns[i].ID, target.Group}, &all)
			if err != nil {
				return nil, fmt.Errorf("read spool: %w", err)
			}
		}
		out[i] = all
	}
	return out, nil
}

func (s *shared) whole(ctx context.Context, turns []Turn) ([]bool, error) {
	var keys []string
	for i := range turns {
		for _, target := range turns[i].Targets {
			keys = append(keys, redis.Key("turn", turns[i].ID, target.Group))
		}
	}
	out := make([]bool, len(turns))
	if len(keys) == 0 {
		return out, nil
	}
	var values []any
	err := s.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
		values, err = c.MGet(ctx, keys...).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read spool: %w", err)
	}
	for i := range turns {
		out[i] = len(turns[i].Targets) > 0
		for range turns[i].Targets {
			value, _ := values[0].(string)
			out[i] = out[i] && strings.HasPrefix(value, "0")
			values = values[1:]
		}
	}
	return out, nil
}
