package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// CutOff notes that the answer of a turn was cut off, failed, or was withheld:
// what a history shows of it is not kept, not after a restart either. A turn
// that is answered again is kept all the same.
func (p *Pipeline) CutOff(ctx context.Context, t ledger.Turn) error {
	if p.isClosed() {
		return ErrStopped
	}
	t.User, t.Assistant = p.Redacted(t.User), p.Redacted(t.Assistant) // as what is kept is compared
	return p.record.CutOff(ctx, &t)
}

func (b *outbox) CutOff(ctx context.Context, t *ledger.Turn) error {
	err := b.spool.CutOff(ctx, t, time.Now())
	if err != nil && b.replicas != nil && ctx.Err() == nil {
		return b.replicas.local.CutOff(ctx, t, time.Now())
	}
	return err
}

// flushCutTurns moves what the local ledger knows of cut turns to Redis.
func (b *outbox) flushCutTurns(ctx context.Context) error {
	for {
		list, err := b.replicas.local.Cuts(ctx, chunk)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := b.replicas.spool.NoteCuts(ctx, list); err != nil {
			return err
		}
		if err := b.replicas.local.RemoveCuts(list); err != nil {
			return err
		}
	}
}
