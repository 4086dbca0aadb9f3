package capture

import (
	"context"
	"fmt"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

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
