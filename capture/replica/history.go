package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// cutPrefix is the prefix of the IDs under which interrupted answers are recorded.
const cutPrefix = "cut:"

func (s *Queue) CutOff(ctx context.Context, t *ledger.Turn, _ time.Time) error {
	err := s.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.Pipeline()
		for _, target := range t.Targets {
			p.Set(ctx, redis.Key("turn", cutPrefix+t.ID, target.Group), "0:"+t.Digest(), ledger.SeenFor)
			p.SetNX(ctx, redis.Key("said", target.Group, t.Digest()), "0", ledger.SeenFor)
		}
		_, err := p.Exec(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("note an answer that was cut off: %w", err)
	}
	return nil
}
