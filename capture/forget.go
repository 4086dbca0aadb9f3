package capture

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Forget empties a part: what waits for it, what is dead, what the memory holds,
// and what the memory has accepted and not come to yet. Then elsewhere is
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
	accepted, err := p.empty(ctx, l, part, false)
	if err != nil {
		return err
	}
	if accepted && p.confirm {
		if err := p.barrier(ctx); err != nil {
			return fmt.Errorf("wait for what the memory has accepted: %w; run it again", err)
		}
	}
	p.mu.Lock()
	l.accepted = false
	p.mu.Unlock()
	if err := p.opts().Memory.Forget(ctx, part.Group); err != nil {
		return fmt.Errorf("empty group: %w", err)
	}
	if err := elsewhere(ctx); err != nil {
		return err
	}
	// An answer that was on its way may repeat what was recalled before.
	_, err = p.empty(ctx, l, part, true)
	p.ForgetLately()
	return err
}

func (p *Pipeline) block(group string) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.state.lane(group)
	l.blocked = true
	p.state.place(l)
	return l
}

func (p *Pipeline) unblock(l *lane) {
	p.mu.Lock()
	l.blocked = false
	p.state.place(l)
	p.mu.Unlock()
	p.signal()
}

// empty takes a part's turns out of the spool, and notes whether some of them
// may have been accepted by the memory.
func (p *Pipeline) empty(ctx context.Context, l *lane, part Part, last bool) (accepted bool, err error) {
	for busy := true; busy; {
		p.mu.Lock()
		if busy = l.active; !busy {
			l.accepted = l.accepted || len(l.under) > 0
			accepted = l.accepted
			p.state.keep(l, slices.DeleteFunc(slices.Clone(l.under), func(u *under) bool { return part.Session == "" || part.Means(&u.entry.turn) }))
		}
		p.mu.Unlock()
		if busy {
			select {
			case <-ctx.Done():
				return false, fmt.Errorf("wait for a call to the memory: %w", ctx.Err())
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	gone, err := p.spool.forget(part, last)
	if err != nil {
		return accepted, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.pending = p.held.pending.minus(gone.pending)
	p.held.dead = p.held.dead.minus(gone.dead)
	return accepted, nil
}

// barrier returns when the memory has come to everything that it accepted
// until now: a message of our own is there.
func (p *Pipeline) barrier(ctx context.Context) error {
	name := "graphiti-proxy.probe." + rand.Text()
	write := func(ctx context.Context) error { return p.opts().Memory.Write(ctx, p.probeGroup, probeMessage(name)) }
	if err := p.call(write); err != nil {
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
			v, err = p.episodes(ctx, p.probeGroup, firstAsk)
			return err
		})
		if err != nil && !errors.Is(err, errNotTried) {
			return err
		}
		if v.names[name] {
			return p.call(func(ctx context.Context) error { return p.opts().Memory.Forget(ctx, p.probeGroup) })
		}
	}
}
