package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Forget empties a part: what waits for it, what is dead, what the memory holds,
// and what it has accepted and not come to yet. Then elsewhere is
// called, to empty what others keep of it. What was said before the end is not
// kept any more, and nothing is delivered to the group meanwhile. It may take
// as long as the memory needs for what it has accepted; when ctx ends before,
// or anything fails, it must be called again.
func (p *Pipeline) Forget(ctx context.Context, part Part, elsewhere func(context.Context) error) error {
	ctx, release, err := p.asLeader(ctx)
	if err != nil {
		return err
	}
	defer release()
	l := p.block(part.Group)
	defer p.unblock(l)
	if err := p.empty(ctx, l, part, false); err != nil {
		return err
	}
	if err := p.emptyMemory(ctx, part); err != nil {
		return err
	}
	if err := elsewhere(ctx); err != nil {
		return err
	}
	// An answer that was on its way may repeat what was recalled before.
	err = p.empty(ctx, l, part, true)
	p.ForgetLately()
	return err
}

// emptyMemory has the memory forget a part: what it holds at once, and what it
// has accepted and not come to yet when it has.
func (p *Pipeline) emptyMemory(ctx context.Context, part Part) error {
	if err := p.forgetHeld(ctx, part); err != nil {
		return err
	}
	if p.opts().Memory.Durable() {
		return nil
	}
	waited, err := p.waitForAccepted(ctx, part.Group)
	if err != nil {
		return fmt.Errorf("what the memory held is deleted; wait for what it has accepted: %w; run it again", err)
	}
	if !waited {
		return nil
	}
	return p.forgetHeld(ctx, part)
}

// forgetHeld has the memory forget what it holds of a part, and a message of our
// own where one was put there.
func (p *Pipeline) forgetHeld(ctx context.Context, part Part) error {
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
	if err = errors.Join(err, p.spool.gone(part.Group, turns)); err != nil {
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

// empty takes a part's turns out of the spool.
func (p *Pipeline) empty(ctx context.Context, l *lane, part Part, last bool) error {
	for busy := true; busy; {
		p.mu.Lock()
		if busy = l.active; !busy {
			p.state.keep(l, slices.DeleteFunc(slices.Clone(l.under), func(u *under) bool { return part.Session == "" || part.Means(&u.entry.turn) }))
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
	gone, err := p.spool.forget(part, last)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.pending = p.held.pending.minus(gone.pending)
	p.held.dead = p.held.dead.minus(gone.dead)
	return nil
}

// waitForAccepted returns when the memory has come to everything that it
// accepted for a group until now, and whether it may have kept something
// meanwhile. Acceptance may have been taken for proof, or be of another process
// of ours, so that only what was never written to need not be waited for.
func (p *Pipeline) waitForAccepted(ctx context.Context, group string) (waited bool, err error) {
	owned, err := p.spool.owned(ctx, "")
	if err != nil {
		return false, err
	}
	if !slices.ContainsFunc(owned, func(o Owned) bool { return o.Group == group }) {
		return false, nil
	}
	p.mu.Lock()
	given, passed, stalled, why := p.given, p.passed, p.state.stalled, p.stallLocked()
	p.mu.Unlock()
	switch {
	case !stalled.IsZero():
		return false, fmt.Errorf("it has kept nothing since %s: %s", stalled.Format(time.RFC3339), why.Remedy())
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
	return true, p.call(func(ctx context.Context) error { return p.opts().Memory.Forget(ctx, p.probeGroup) })
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
		if err != nil && !errors.Is(err, errNotTried) {
			return err
		}
		if v.names[name] {
			return nil
		}
	}
}
