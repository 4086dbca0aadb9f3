package deliver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// batch is one send action for a group.
type batch struct {
	w        *worker
	group    *group
	single   bool
	accepted bool // the memory has accepted some of it, or a barrier
}

// send sends the first pending turns of a group.
func (l *Loop) send(ctx context.Context, w *worker, a action) {
	b := &batch{w: w, group: a.group, single: a.single}
	items, err := l.o.Ledger.Next(ctx, a.group.name, a.n)
	more := len(items) == a.n
	if n := fitting(items); n < len(items) {
		items, more = items[:n], true
	}
	items, isolate := l.together(a, items)
	if err == nil && len(items) > 0 {
		err = l.give(ctx, b, items)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := isolate || len(items) == 0 || !items[len(items)-1].Backfill
	if err == nil {
		w.sent(a.group, more && len(items) > 0 || isolate, fresh, isolate)
		l.workedLocked(a)
	} else {
		w.failed(a.group, fresh, time.Now().Add(retryIn(a.group.failures, err)))
		l.failedLocked(a, err)
	}
}

// maxBatchBytes limits the content of one call: a service reads all of it before it
// answers, and some services have a limit.
const maxBatchBytes = 50 << 10

// fitting returns how many items fit into one call, at least one.
func fitting(items []Item) int {
	size := 0
	for i := range items {
		for _, m := range items[i].Messages {
			size += len(m.Text)
		}
		if size > maxBatchBytes && i > 0 {
			return i
		}
	}
	return len(items)
}

// together returns the items that may share one call. An isolated item is sent alone and
// waits for an empty window; isolate reports whether such an item is next.
func (l *Loop) together(a action, items []Item) (now []Item, isolate bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range items {
		if items[i].isolated(l.timing.MaxLosses) && (i > 0 || !a.single) {
			return items[:i], true
		}
	}
	return items, false
}

// give sends items in one call. It bisects a rejected batch to deliver the rest of it.
func (l *Loop) give(ctx context.Context, b *batch, items []Item) error {
	g := b.group.name
	if len(items) == 0 {
		return nil
	}
	l.dated(items)
	var messages []graphiti.Row
	for i := range items {
		messages = append(messages, items[i].Messages...)
	}
	began := time.Now()
	if l.confirm() {
		if err := contained(func() error { return l.o.Ledger.MarkSent(items) }); err != nil {
			return errors.Join(err, l.requeue(b, items, err.Error()))
		}
	}
	var err error
	if len(messages) > 0 {
		l.wrote()
		err = l.call(ctx, func(ctx context.Context) error { return l.o.Memory.Write(ctx, g, messages) })
		l.wrote()
	}
	if err == nil {
		b.accepted = true
	} else if !graphiti.Retryable(err) && l.refusesAll(ctx, b) {
		err = fmt.Errorf("%w: %v", errRefusesAll, err) //nolint:errorlint // errRefusesAll must hide the cause, which is not about the turn
	}
	var part *graphiti.PartError
	switch {
	case errors.As(err, &part):
		return l.gavePart(ctx, b, items, part, began)
	case err == nil && l.confirm() && len(messages) > 0:
		l.inFlight(b, items, false, began)
		return nil
	case err == nil:
		return l.delivered(b, items, began)
	case !graphiti.Retryable(err) && len(items) > 1:
		half := len(items) / 2
		if err := l.give(ctx, b, items[:half]); err != nil {
			return errors.Join(err, l.requeue(b, items[half:], err.Error()))
		}
		return l.give(ctx, b, items[half:])
	case !graphiti.Retryable(err):
		l.tell(items, began, false, errDead)
		l.o.Log.Warn("turn rejected by the memory, moved to the dead letters", "to_do", deadRemedy)
		reason := clip(l.o.Redact(graphiti.Sanitize(err)))
		return l.note(b.w, b.group, func() error { return l.o.Ledger.MarkDead(items[0], reason) })
	case l.confirm() && !unsent(err):
		l.inFlight(b, items, true, began) // the memory may have accepted them
		return err
	}
	return errors.Join(err, l.requeue(b, items, err.Error()))
}

// gavePart handles a call that ended in the middle: the accepted turns are in flight, the
// turn in which it ended is in doubt, and the others were not sent.
func (l *Loop) gavePart(ctx context.Context, b *batch, items []Item, part *graphiti.PartError, began time.Time) error {
	done, left := 0, part.Accepted
	for done < len(items) && len(items[done].Messages) <= left {
		left -= len(items[done].Messages)
		done++
	}
	b.accepted = b.accepted || done > 0
	if !l.confirm() { // acceptance is delivery
		err := l.delivered(b, items[:done], began)
		return errors.Join(part, err, l.requeue(b, items[done:], part.Error()))
	}
	if done > 0 {
		l.inFlight(b, items[:done], false, began)
	}
	if done == len(items) { // impossible: part means that a message was not accepted
		return part
	}
	rest := done
	switch {
	case left > 0 || graphiti.Retryable(part.Err) && !unsent(part.Err):
		l.inFlight(b, items[done:done+1], true, began)
		rest++
	case !graphiti.Retryable(part.Err):
		return l.give(ctx, b, items[done:]) // alone, it becomes a dead letter
	}
	return errors.Join(part, l.requeue(b, items[rest:], part.Error()))
}

// dated replaces timestamps in the memory's future with its current time.
func (l *Loop) dated(items []Item) {
	now := graphiti.Now(l.o.Memory.Clock())
	for i := range items {
		for j := range items[i].Messages {
			if msg := &items[i].Messages[j]; msg.Said.After(now) { // Graphiti hides messages from the future
				msg.Said = now.UTC()
			}
		}
	}
}

func (l *Loop) inFlight(b *batch, items []Item, doubt bool, began time.Time) {
	flights := make([]*flight, len(items))
	for i := range items {
		flights[i] = newFlight(items[i], began)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.w.inFlight(b.group, flights, doubt, b.single, time.Now())
}

// delivered marks items as delivered if the memory's acceptance is the proof.
func (l *Loop) delivered(b *batch, items []Item, began time.Time) error {
	if len(items) == 0 {
		return nil
	}
	l.tell(items, began, false, nil)
	err := l.note(b.w, b.group, func() error { return l.o.Ledger.MarkDelivered(items, false) })
	l.o.OnStored(b.group.name)
	return err
}

// requeue returns items to the pending state.
func (l *Loop) requeue(b *batch, items []Item, reason string) error {
	if len(items) == 0 {
		return nil
	}
	return l.note(b.w, b.group, func() error { return l.o.Ledger.Requeue(items, clip(reason)) })
}

// note writes to the ledger, and has a failed write repeated before any other action for
// the group. Otherwise a turn marked as sent, but not in flight, would wait for the next
// start.
func (l *Loop) note(w *worker, g *group, write func() error) error {
	err := contained(write)
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(g.owed) == 0 {
		l.holds.owing++
	}
	g.owed = append(g.owed, write)
	w.failed(g, true, time.Now().Add(retryIn(g.failures, err)))
	l.failedLocked(action{kind: settle, group: g}, err)
	return err
}

// settle repeats failed ledger writes.
func (l *Loop) settle(w *worker, a action) {
	g := a.group
	l.mu.Lock()
	owed := g.owed
	l.mu.Unlock()
	var err error
	for len(owed) > 0 && err == nil {
		if err = contained(owed[0]); err == nil {
			owed = owed[1:]
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.owed = owed; err != nil {
		w.failed(g, true, time.Now().Add(retryIn(g.failures, err)))
		l.failedLocked(a, err)
		return
	}
	l.holds.owing--
	g.failures, g.retryAt = 0, time.Time{}
	l.workedLocked(a)
}

// wrote records the start or the end of a call that sends turns.
func (l *Loop) wrote() {
	l.mu.Lock()
	l.writes++
	l.wroteAt = time.Now()
	l.mu.Unlock()
}

// tell reports the delivery of traced turns.
func (l *Loop) tell(items []Item, began time.Time, verified bool, err error) {
	for i := range items {
		if t := items[i].Turn.Trace; t != "" {
			l.o.OnDelivered(Delivery{Trace: t, Group: items[i].Group, Began: began, Verified: verified, Err: err})
		}
	}
}

// retryIn returns the delay before the next attempt: exponential with full jitter, and at
// least the server's Retry-After.
func retryIn(attempts int, err error) time.Duration {
	most := min(firstRetry<<min(attempts, 10), lastRetry)
	return max(rand.N(most)+1, retryAfter(err)) // #nosec G404 -- spreads load, no secret
}

// retryAfter returns the server's Retry-After, limited to maxRetryAfter.
func retryAfter(err error) time.Duration {
	var status *graphiti.StatusError
	if errors.As(err, &status) {
		return min(status.RetryAfter, maxRetryAfter)
	}
	return 0
}
