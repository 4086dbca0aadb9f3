package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Forget deletes the turns of a part that are older than a generation, whether queued,
// dead, stored by the memory, or accepted and unprocessed. Turns of the generation and
// newer ones stay, unless the memory receives them during the call. Forget may take
// until the memory has processed everything it has accepted. After an error it must be
// called again.
func (p *Pipeline) Forget(ctx context.Context, part ledger.Part, generation int64) error {
	defer p.Doubt()
	if err := p.forgetHeld(part, generation); err != nil {
		return err
	}
	return p.record.Forget(ctx, part, generation)
}

// Forget first deletes the rows and their queued copies, and then the episodes in Graphiti.
func (b *outbox) Forget(ctx context.Context, part ledger.Part, generation int64) error {
	if err := b.empty(part, generation, false); err != nil {
		return err
	}
	defer b.loop.Resume(part.Group)
	if err := b.loop.Pause(ctx, part.Group); err != nil {
		return err
	}
	if err := b.empty(part, generation, false); err != nil {
		return err
	}
	if err := b.emptyMemory(ctx, part); err != nil {
		return err
	}
	return b.empty(part, generation, true)
}

// Import implements Queue.
func (b *outbox) Import(owner ledger.Turn) { b.pulls.Import(owner) }

// Withhold implements Queue.
func (b *outbox) Withhold(groups []string) { b.loop.Withhold(groups) }

// answerTime is the timeout for a memory's first answer before a forget.
const answerTime = 10 * time.Second

// emptyMemory deletes a part in the memory: first the stored messages, then the accepted
// messages that the memory had not processed.
func (b *outbox) emptyMemory(ctx context.Context, part ledger.Part) error {
	if err := b.answers(ctx); err != nil {
		return fmt.Errorf("the memory does not answer, start it first; its part waits to be deleted: %w", err)
	}
	err := b.forgetHeld(ctx, part)
	var left *graphiti.RemainsError
	if remains := errors.As(err, &left); err != nil && (!remains || left.Unreachable) {
		return err
	}
	// Messages that arrive during the first deletion may remain.
	waited, failed := b.waitForAccepted(ctx, part.Group)
	if failed != nil {
		return errors.Join(err, fmt.Errorf("the part that it has not processed yet waits to be deleted: %w", failed))
	}
	if !waited {
		return err
	}
	return b.forgetHeld(ctx, part)
}

// answers checks whether the memory is reachable.
func (b *outbox) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(answerTime, b.opts().Timeout))
	defer cancel()
	return b.memory.Health(ctx)
}

// forgetHeld deletes Graphiti's episodes of a part, together with barriers in the group. An episode
// may have both sides of a turn; the other side stays in the store.
func (b *outbox) forgetHeld(ctx context.Context, part ledger.Part) error {
	if part.Session+part.Message == "" {
		if err := b.memory.Forget(ctx, part.Group); err != nil {
			return fmt.Errorf("empty group: %w", err)
		}
		return nil
	}
	names, err := b.memory.ForgetEpisodes(ctx, part.Group, func(e *graphiti.Row) bool {
		return slices.ContainsFunc(e.Sides(), func(side graphiti.Row) bool { return part.Said(&side) }) || strings.HasPrefix(e.Name, graphiti.CheckNamePrefix)
	})
	var turns []string
	for _, name := range names {
		if turn, ok := graphiti.TurnOf(name); ok {
			turns = append(turns, turn)
		}
	}
	if err = errors.Join(err, b.MarkForgotten(part.Group, turns)); err != nil {
		return fmt.Errorf("forget a part of a group: %w", err)
	}
	return nil
}

// empty forgets the turns of a part that are older than a generation, in the memory and in the
// queue, and takes them out of flight if the group is paused.
func (b *outbox) empty(part ledger.Part, generation int64, last bool) error {
	gone, err := b.Ledger.Forget(part, generation, last)
	if err != nil {
		return err
	}
	b.loop.Discard(part.Group, func(it *deliver.Item) bool {
		return it.Turn.Generation < generation && (part.Session+part.Message == "" || part.Means(&it.Turn))
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held.Pending = b.held.Pending.Minus(gone.Pending)
	b.held.Dead = b.held.Dead.Minus(gone.Dead)
	return nil
}

// waitForAccepted returns when the memory has processed everything it has accepted for a
// group, and whether it may have stored something meanwhile. Acceptance may have counted as
// delivery. So it skips only groups that were never written to.
func (b *outbox) waitForAccepted(ctx context.Context, group string) (waited bool, err error) {
	owned, err := b.spool.Owned(ctx, "")
	if err != nil || !slices.ContainsFunc(owned, func(o ledger.Owned) bool { return o.Group == group }) {
		return false, err
	}
	return b.loop.Barrier(ctx, group)
}
