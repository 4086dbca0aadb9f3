package deliver

import (
	"context"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// probeGroup is the group that barriers of a ledger are written to.
func probeGroup(instance string) string { return graphiti.CheckGroupPrefix + instance }

// Withhold sets the groups to which nothing is sent, in place of those of the last call.
// Their turns wait.
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

// Pause stops sending to a group, and looking for turns in it, until Resume. It returns
// when no call for the group is in progress. The group is paused even if Pause returns
// an error.
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
	l.excuseLocked()
}

func (l *Loop) busyLocked(group string) bool {
	for _, w := range l.run.workers {
		if g := w.groups[group]; g != nil && g.busy {
			return true
		}
	}
	return false
}

// Discard takes turns out of flight that the ledger has deleted. The group must be
// paused.
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

// Barrier returns when the memory has worked off everything that it accepted
// for a group until now. waited says that it may have kept something meanwhile.
// Where all groups have one worker it writes a message to a group of its own,
// else to the group itself, where it stays: the caller deletes it.
func (l *Loop) Barrier(ctx context.Context, group string) (waited bool, err error) {
	l.mu.Lock()
	writes, cleared, stalled, why, hidden := l.writes, l.cleared, l.stalledLocked(), l.stallLocked(), l.run.sight.hidden
	l.mu.Unlock()
	switch {
	case !stalled.IsZero():
		return false, fmt.Errorf("it has kept nothing since %s: %s", stalled.Format(time.RFC3339), why.Remedy())
	case l.o.Apart && (hidden || l.saidDatabase(ctx) == "falkordb"):
		return true, l.waitUnseen(ctx)
	case l.o.Apart:
		return true, l.pass(ctx, group)
	case cleared == writes:
		return false, nil
	}
	return true, l.passAll(ctx, writes)
}

// passAll is pass for all groups, which have one worker.
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
	_ = l.deleteBarriers(ctx, probe) // what is left goes with the next one
	return err
}

// pass returns when a message of our own is in a group: what was accepted
// before it has been worked off.
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
		v, err := l.list(ctx, group, firstAsk)
		if err != nil { // a memory that is down is not waited for
			return err
		}
		if v.names[name] {
			return nil
		}
	}
}

// waitUnseen gives a memory that cannot be listed the usual time to work off
// what it has accepted, since nothing shows when it has.
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
