package replica

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// cutPrefix is the prefix of the IDs under which interrupted answers are recorded.
const cutPrefix = "cut:"

func (s *Queue) CutOff(ctx context.Context, t *ledger.Turn, _ time.Time) error {
	var list []ledger.CutOff
	for _, target := range t.Targets {
		list = append(list, ledger.CutOff{ID: t.ID, Group: target.Group, Said: t.Digest()})
	}
	return s.NoteCuts(ctx, list)
}

func (s *Queue) NoteCuts(ctx context.Context, list []ledger.CutOff) error {
	if len(list) == 0 {
		return nil
	}
	err := s.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.Pipeline()
		for _, n := range list {
			p.Set(ctx, redis.Key("turn", cutPrefix+n.ID, n.Group), "0:"+n.Said, ledger.SeenFor)
			p.SetNX(ctx, redis.Key("said", n.Group, n.Said), "0", ledger.SeenFor)
		}
		_, err := p.Exec(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("note an answer that was cut off: %w", err)
	}
	return nil
}

func (s *Queue) Whole(ctx context.Context, turns []ledger.Turn) ([]bool, error) {
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
