package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Forget empties a part of what is older than a generation: what waits for it,
// what is dead, what the memory holds, and what it has accepted and not come to
// yet. Turns of that generation are kept, but for those that the memory was
// given meanwhile. It may take as long as the memory needs for what it has
// accepted; when ctx ends before, or anything fails, it must be called again.
func (p *Pipeline) Forget(ctx context.Context, part ledger.Part, generation int64) error {
	ctx, release, err := p.asLeader(ctx)
	if err != nil {
		return err
	}
	defer release()
	l := p.block(part.Group)
	defer p.unblock(l)
	defer p.Doubt()
	if err := p.empty(ctx, l, part, generation, false); err != nil {
		return err
	}
	if err := p.emptyMemory(ctx, part); err != nil {
		return err
	}
	return p.empty(ctx, l, part, generation, true)
}

// Raise has the generations of scopes count that were forgotten, and returns the
// newest that is known here.
func (p *Pipeline) Raise(floors map[string]int64) (newest int64, err error) {
	return p.disk.Raise(floors)
}

// Withhold has nothing handed over to some groups, and to no others, until it is
// called again. Their turns wait.
func (p *Pipeline) Withhold(groups []string) {
	withheld := make(map[string]bool, len(groups))
	for _, g := range groups {
		withheld[g] = true
	}
	p.mu.Lock()
	p.state.withheld = withheld
	for _, l := range p.state.lanes {
		p.state.place(l)
	}
	p.mu.Unlock()
	p.signal()
}

// answerTime bounds what a memory that is to forget is waited for, to answer at
// all.
const answerTime = 10 * time.Second

// emptyMemory has the memory forget a part: what it holds at once, and what it
// has accepted and not come to yet when it has.
func (p *Pipeline) emptyMemory(ctx context.Context, part ledger.Part) error {
	if err := p.answers(ctx); err != nil {
		return fmt.Errorf("the memory does not answer and must be started first; what it holds waits to be deleted: %w", err)
	}
	err := p.forgetHeld(ctx, part)
	var left *graphiti.RemainsError
	if remains := errors.As(err, &left); p.opts().Memory.Durable() || err != nil && (!remains || left.Unreachable) {
		return err
	}
	// What comes while it is being emptied may remain.
	waited, failed := p.waitForAccepted(ctx, part.Group)
	if failed != nil {
		return errors.Join(err, fmt.Errorf("what it has accepted and not come to waits to be deleted: %w", failed))
	}
	if !waited {
		return err
	}
	return p.forgetHeld(ctx, part)
}

// answers asks the memory whether it is there.
func (p *Pipeline) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(answerTime, p.opts().Timeout))
	defer cancel()
	return p.opts().Memory.Health(ctx)
}

// forgetHeld has the memory forget what it holds of a part, and a message of our
// own where one was put there.
func (p *Pipeline) forgetHeld(ctx context.Context, part ledger.Part) error {
	if part.Session == "" {
		if err := p.opts().Memory.Forget(ctx, part.Group); err != nil {
			return fmt.Errorf("empty group: %w", err)
		}
		return nil
	}
	names, err := p.opts().Memory.ForgetEpisodes(ctx, part.Group, func(e *graphiti.Episode) bool {
		return part.Said(e) || strings.HasPrefix(e.Name, graphiti.CheckNamePrefix)
	})
	var turns []string
	for _, name := range names {
		if turn, ok := graphiti.TurnOf(name); ok {
			turns = append(turns, turn)
		}
	}
	if err = errors.Join(err, p.spool.MarkForgotten(part.Group, turns)); err != nil {
		return fmt.Errorf("forget a session: %w", err)
	}
	return nil
}

func (p *Pipeline) block(group string) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.state.lane(group)
	l.blocked++
	p.state.place(l)
	return l
}

func (p *Pipeline) unblock(l *lane) {
	p.mu.Lock()
	l.blocked--
	p.state.place(l)
	p.mu.Unlock()
	p.signal()
}

// empty takes a part's turns out of the spool that are older than a generation.
func (p *Pipeline) empty(ctx context.Context, l *lane, part ledger.Part, generation int64, last bool) error {
	for busy := true; busy; {
		p.mu.Lock()
		if busy = l.active; !busy {
			p.state.keep(l, slices.DeleteFunc(slices.Clone(l.under), func(u *under) bool {
				return u.entry.Turn.Generation < generation && (part.Session == "" || part.Means(&u.entry.Turn))
			}))
		}
		p.mu.Unlock()
		if busy {
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for a call to the memory: %w", ctx.Err())
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	gone, err := p.spool.Forget(part, generation, last)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.Pending = p.held.Pending.Minus(gone.Pending)
	p.held.Dead = p.held.Dead.Minus(gone.Dead)
	return nil
}

// waitForAccepted returns when the memory has come to everything that it
// accepted for a group until now, and whether it may have kept something
// meanwhile. Acceptance may have been taken for proof, or be of another process
// of ours, so that only what was never written to need not be waited for.
func (p *Pipeline) waitForAccepted(ctx context.Context, group string) (waited bool, err error) {
	owned, err := p.spool.Owned(ctx, "")
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(owned, func(o ledger.Owned) bool { return o.Group == group }) {
		return false, nil
	}
	p.mu.Lock()
	given, passed, stalled, why := p.given, p.passed, p.state.stalled, p.stallLocked()
	p.mu.Unlock()
	switch {
	case !stalled.IsZero():
		return false, fmt.Errorf("it has kept nothing since %s: %s", stalled.Format(time.RFC3339), why.Remedy())
	case p.opts().Memory.Apart() && p.unseen(ctx):
		return true, p.waitUnseen(ctx)
	case p.opts().Memory.Apart():
		return true, p.barrier(ctx, group)
	case passed == given:
		return false, nil
	}
	if err := p.barrier(ctx, p.probeGroup); err != nil {
		return false, err
	}
	p.mu.Lock()
	p.passed = given
	p.mu.Unlock()
	err = p.call(func(ctx context.Context) error { return p.opts().Memory.Forget(ctx, p.probeGroup) })
	if err != nil {
		p.opts().Log.Debug("a message of our own is left in the memory", "error", err)
	}
	return true, nil
}

// unseen reports whether the memory lists nothing of what it holds, as an MCP
// server on FalkorDB.
func (p *Pipeline) unseen(ctx context.Context) bool {
	p.mu.Lock()
	hidden := p.state.hidden
	p.mu.Unlock()
	return hidden || p.database(ctx) == "falkordb"
}

// waitUnseen returns when a memory that lists nothing has had the time in which
// a turn is waited for: when it comes to what it has accepted is not to be seen.
func (p *Pipeline) waitUnseen(ctx context.Context) error {
	p.mu.Lock()
	until := p.gaveAt.Add(p.state.timing.showAfter)
	p.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(until)):
		return nil
	}
}

// barrier returns when a message of our own is in a group: what was accepted
// before it, for that group or for all, has been worked off.
func (p *Pipeline) barrier(ctx context.Context, group string) error {
	name := probeName()
	if err := p.call(func(ctx context.Context) error { return p.opts().Memory.Write(ctx, group, probeMessage(name)) }); err != nil {
		return err
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		var v seen
		err := p.call(func(ctx context.Context) (err error) {
			v, err = p.episodes(ctx, group, firstAsk)
			return err
		})
		if err != nil { // a memory that is down is not waited for
			return err
		}
		if v.names[name] {
			return nil
		}
	}
}
