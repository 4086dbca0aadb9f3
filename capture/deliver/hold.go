package deliver

import (
	"context"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// probeGroup returns the group for the barriers of a ledger.
func probeGroup(instance string) string { return graphiti.CheckGroupPrefix + instance }

// Withhold replaces the set of withheld groups. Their turns wait.
func (l *Loop) Withhold(groups []string) {
	withheld := make(map[string]bool, len(groups))
	for _, g := range groups {
		withheld[g] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds.withheld = withheld
	l.signalAllLocked()
}

// Pause stops sending to a group and polling it, until Resume. It returns when no call for
// the group is in progress. The group is paused even if Pause returns an error.
func (l *Loop) Pause(ctx context.Context, group string) error {
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended.Broadcast()
	})()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds.paused[group]++
	for l.busyLocked(group) {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for a call to the memory: %w", ctx.Err())
		}
		l.ended.Wait()
	}
	return nil
}

// Resume ends a Pause.
func (l *Loop) Resume(group string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds.paused[group]--; l.holds.paused[group] == 0 {
		delete(l.holds.paused, group)
	}
	l.restartStallTimersLocked()
}

func (l *Loop) busyLocked(group string) bool {
	for _, w := range l.run.workers {
		if g := w.groups[group]; g != nil && g.busy {
			return true
		}
	}
	return false
}

// Discard removes turns from flight that the ledger has deleted. The group must be paused.
func (l *Loop) Discard(group string, gone func(*Item) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.run.failures, failing{group, look})
	for _, w := range l.run.workers {
		if g := w.groups[group]; g != nil {
			w.discard(g, gone)
		}
	}
}

// Barrier returns when the memory has processed everything it has accepted for a group so
// far. waited reports whether the memory may have stored something meanwhile. If one worker
// serves all groups, Barrier writes a probe message to a group of its own; otherwise it
// writes to the group itself, and the caller must delete the message.
func (l *Loop) Barrier(ctx context.Context, group string) (waited bool, err error) {
	l.mu.Lock()
	writes, cleared, stalled, why, hidden := l.writes, l.cleared, l.stalledLocked(), l.stallLocked(), l.run.sight.hidden
	l.mu.Unlock()
	switch {
	case !stalled.IsZero():
		return false, fmt.Errorf("the memory has stored nothing since %s: %s", stalled.Format(time.RFC3339), why.Remedy())
	case l.o.Apart && (hidden || l.saidDatabase(ctx) == "falkordb"):
		return true, l.waitUnseen(ctx)
	case l.o.Apart:
		return true, l.pass(ctx, group)
	case cleared == writes:
		return false, nil
	}
	return true, l.passAll(ctx, writes)
}

// passAll is pass for all groups, which share one worker.
func (l *Loop) passAll(ctx context.Context, writes int) error {
	l.mu.Lock()
	probe := l.run.probe
	l.barriers++
	l.mu.Unlock()
	err := l.pass(ctx, probe)
	l.mu.Lock()
	l.barriers--
	if err == nil {
		l.cleared = writes
	}
	l.mu.Unlock()
	_ = l.deleteBarriers(ctx, probe) // the next call deletes leftovers
	return err
}

// pass returns when a new probe message is visible in a group, which proves earlier
// messages processed.
func (l *Loop) pass(ctx context.Context, group string) error {
	name := barrierName()
	if err := l.call(ctx, func(ctx context.Context) error { return l.o.Memory.Write(ctx, group, barrierMessage(name)) }); err != nil {
		return err
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		v, err := l.list(ctx, group, pollMargin)
		if err != nil { // do not wait for a memory that is down
			return err
		}
		if v.names[name] {
			return nil
		}
	}
}

// waitUnseen waits for the usual processing time of a memory without listings.
func (l *Loop) waitUnseen(ctx context.Context) error {
	l.mu.Lock()
	until := l.wroteAt.Add(l.timing.ShowAfter)
	l.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(until)):
		return nil
	}
}
