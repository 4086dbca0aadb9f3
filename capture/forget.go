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

// Forget deletes the turns of a part that are older than a generation: those that wait
// or are dead, those that the memory holds, and those that it has accepted and not
// worked off yet. It keeps turns of the generation and newer ones, except those that the
// memory was given meanwhile. It may take as long as the memory needs to work off what
// it has accepted. If ctx ends before, or anything fails, it must be called again.
func (p *Pipeline) Forget(ctx context.Context, part ledger.Part, generation int64) error {
	defer p.Doubt()
	return p.record.Forget(ctx, part, generation)
}

func (b *outbox) Forget(ctx context.Context, part ledger.Part, generation int64) error {
	ctx, release, err := b.asLeader(ctx)
	if err != nil {
		return err
	}
	defer release()
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

// Raise implements Groups.
func (b *outbox) Raise(floors map[string]int64) (newest int64, err error) {
	return b.disk.Raise(floors)
}

// Withhold implements Queue.
func (b *outbox) Withhold(groups []string, missed bool) {
	b.loop.Withhold(groups)
	b.recent.Block(groups, missed)
}

// Recent implements Queue.
func (b *outbox) Recent(ctx context.Context, group, query string, max int) ([]graphiti.Fact, error) {
	return b.recent.Search(ctx, group, query, max)
}

// answerTime bounds the wait for the first answer of a memory that is to forget.
const answerTime = 10 * time.Second

// emptyMemory deletes a part in the memory: what it holds at once, and what it has
// accepted and not yet processed when that is done.
func (b *outbox) emptyMemory(ctx context.Context, part ledger.Part) error {
	if err := b.answers(ctx); err != nil {
		return fmt.Errorf("the memory does not answer and must be started first; what it holds waits to be deleted: %w", err)
	}
	err := b.forgetHeld(ctx, part)
	var left *graphiti.RemainsError
	if remains := errors.As(err, &left); err != nil && (!remains || left.Unreachable) {
		return err
	}
	// What comes while it is being emptied may remain.
	waited, failed := b.waitForAccepted(ctx, part.Group)
	if failed != nil {
		return errors.Join(err, fmt.Errorf("what it has accepted and not come to waits to be deleted: %w", failed))
	}
	if !waited {
		return err
	}
	return b.forgetHeld(ctx, part)
}

// answers asks the memory whether it is there.
func (b *outbox) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(answerTime, b.opts().Timeout))
	defer cancel()
	return b.memory.Health(ctx)
}

// forgetHeld deletes what the memory holds of a part, and a message of our own where
// one was put there.
func (b *outbox) forgetHeld(ctx context.Context, part ledger.Part) error {
	if part.Session+part.Message == "" {
		if err := b.memory.Forget(ctx, part.Group); err != nil {
			return fmt.Errorf("empty group: %w", err)
		}
		return nil
	}
	names, err := b.memory.ForgetEpisodes(ctx, part.Group, func(e *graphiti.Episode) bool {
		return part.Said(e) || strings.HasPrefix(e.Name, graphiti.CheckNamePrefix)
	})
	var turns []string
	for _, name := range names {
		if turn, ok := graphiti.TurnOf(name); ok {
			turns = append(turns, turn)
		}
	}
	if err = errors.Join(err, b.spool.MarkForgotten(part.Group, turns)); err != nil {
		return fmt.Errorf("forget a part of a group: %w", err)
	}
	return nil
}

// empty takes a part's turns out of the spool that are older than a generation.
// Its group is paused.
func (b *outbox) empty(part ledger.Part, generation int64, last bool) error {
	if part.Message != "" { // which has arrived, so that no turn that waits is of it
		return nil
	}
	gone, err := b.spool.Forget(part, generation, last)
	if err != nil {
		return err
	}
	b.loop.Discard(part.Group, func(it *deliver.Item) bool {
		return it.Turn.Generation < generation && (part.Session == "" || it.Turn.Session == part.Session && (part.Owner == "" || it.Turn.Owner == part.Owner))
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held.Pending = b.held.Pending.Minus(gone.Pending)
	b.held.Dead = b.held.Dead.Minus(gone.Dead)
	return nil
}

// waitForAccepted returns when the memory has come to everything that it
// accepted for a group until now, and whether it may have kept something
// meanwhile. Acceptance may have been taken for proof, or be of another process
// of ours, so that only what was never written to need not be waited for.
func (b *outbox) waitForAccepted(ctx context.Context, group string) (waited bool, err error) {
	owned, err := b.spool.Owned(ctx, "")
	if err != nil || !slices.ContainsFunc(owned, func(o ledger.Owned) bool { return o.Group == group }) {
		return false, err
	}
	return b.loop.Barrier(ctx, group)
}
