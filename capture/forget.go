package capture

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Owned is a group that was written to, and one of those whose it is.
type Owned struct {
	Group  string `json:"group"`
	Owner  string `json:"owner"`
	Scope  string `json:"scope"`
	Key    string `json:"key"`
	Shared bool   `json:"shared,omitempty"` // others wrote to it too
}

// Groups lists the groups that were written to, or those of one owner.
func (p *Pipeline) Groups(ctx context.Context, owner string) ([]Owned, error) {
	return p.spool.owned(ctx, owner)
}

func (s *spool) owned(ctx context.Context, owner string) (list []Owned, err error) {
	err = each(ctx, s.db, `SELECT grp, owner, scope, key, (SELECT count(*) FROM groups o WHERE o.grp = g.grp) > 1
		FROM groups g WHERE ?1 = '' OR owner = ?1 ORDER BY scope, key, grp`, []any{owner}, func(scan func(...any) error) error {
		var o Owned
		err := scan(&o.Group, &o.Owner, &o.Scope, &o.Key, &o.Shared)
		list = append(list, o)
		return err
	})
	return list, err
}

// maxForgot bounds the groups of which it is remembered when they were
// emptied.
const maxForgot = 10000

// leaveOut takes the groups off a turn that were emptied after it was said.
func (p *Pipeline) leaveOut(t *Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.forgot) == 0 {
		return
	}
	// The targets may be shared with other turns.
	t.Targets = slices.DeleteFunc(slices.Clone(t.Targets), func(target graphiti.Target) bool {
		at, ok := p.forgot[target.Group]
		return ok && !t.Said.After(at)
	})
}

// Forget empties a group: what waits for it, what is dead, what the memory
// holds, and what the memory has accepted and not come to yet. Turns that were
// said before are not added any more. It may take as long as the memory needs
// for what it has accepted; when ctx ends before, it must be called again.
func (p *Pipeline) Forget(ctx context.Context, group string) error {
	ctx, release, err := p.asLeader(ctx)
	if err != nil {
		return err
	}
	defer release()
	l := p.block(group)
	defer p.unblock(l)
	accepted, err := p.empty(ctx, l)
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
	if err := p.opts().Memory.Forget(ctx, group); err != nil {
		return fmt.Errorf("empty group: %w", err)
	}
	return nil
}

func (p *Pipeline) block(group string) *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.forgot) >= maxForgot || p.forgot == nil {
		p.forgot = make(map[string]time.Time)
	}
	p.forgot[group] = time.Now()
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

// empty takes a group's turns out of the spool, and notes whether some of them
// may have been accepted by the memory.
func (p *Pipeline) empty(ctx context.Context, l *lane) (accepted bool, err error) {
	for busy := true; busy; {
		p.mu.Lock()
		if busy = l.active; !busy {
			l.accepted = l.accepted || len(l.under) > 0
			accepted = l.accepted
			p.state.keep(l, nil)
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
	gone, err := p.spool.forget(l.group)
	if err != nil {
		return accepted, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.pending = p.held.pending.minus(gone.pending)
	p.held.dead = p.held.dead.minus(gone.dead)
	return accepted, nil
}

// forget removes a group's turns, and that it was written to. That they were
// delivered is still known: clients resend them.
func (s *spool) forget(group string) (d dropped, err error) {
	err = s.write("empty group", func(tx *sqlite.Tx) error {
		tx.Fold()
		d = dropped{}
		// A turn that never was delivered is not to come back either.
		if _, err := tx.Exec("INSERT INTO seen (turn, grp, at, open, said) SELECT turn, grp, ?, open, said FROM spool WHERE grp = ? ON CONFLICT DO NOTHING",
			time.Now().Unix(), group); err != nil {
			return err
		}
		if err := rowsIn(tx, "DELETE FROM spool WHERE grp = ? RETURNING dead, bytes", []any{group}, d.row); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM promoted WHERE grp = ?", group); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM groups WHERE grp = ?", group)
		return err
	})
	return d, err
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

// Waiting calls f for each turn that waits for a group or is dead, with what
// would be written of it.
func (p *Pipeline) Waiting(ctx context.Context, group string, f func(graphiti.Message) error) error {
	return p.spool.waiting(ctx, group, f, p.opts().MaxChars)
}

func (s *spool) waiting(ctx context.Context, group string, f func(graphiti.Message) error, maxChars int) error {
	return each(ctx, s.db, "SELECT "+entryColumns+" FROM spool WHERE grp = ? ORDER BY seq", []any{group}, func(scan func(...any) error) error {
		var e entry
		if err := e.scan(scan); err != nil {
			return err
		}
		return e.messages(f, maxChars)
	})
}

// messages calls f for what would be written of an entry.
func (e *entry) messages(f func(graphiti.Message) error, maxChars int) error {
	for _, m := range e.turn.messages(e.scope, e.have, maxChars, time.Now()) {
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}
