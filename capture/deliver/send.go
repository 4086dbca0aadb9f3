package deliver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// batch is what is sent to one group in one action.
type batch struct {
	w        *worker
	group    *group
	single   bool
	accepted bool // the memory has accepted something of it, or a message of our own
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

// maxBatchBytes bounds what is sent in one call: a service reads all of it before it
// answers, and some put a limit to it.
const maxBatchBytes = 50 << 10

// fitting returns how many items go into one call: one at least.
func fitting(items []Item) int {
	size := 0
	for i := range items {
		for _, m := range items[i].Messages {
			size += len(m.Content)
		}
		if size > maxBatchBytes && i > 0 {
			return i
		}
	}
	return len(items)
}

// together leaves of items what may go in one call. One that was lost too often
// goes alone, and waits where others are in flight: isolate says that it is
// next.
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

// give sends items in one call. Where something in them is refused it is
// narrowed down, half by half, and the rest gets through.
func (l *Loop) give(ctx context.Context, b *batch, items []Item) error {
	g := b.group.name
	if len(items) == 0 {
		return nil
	}
	l.dated(items)
	var messages []graphiti.Message
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
		err = fmt.Errorf("%w: %v", errRefusesAll, err) //nolint:errorlint // it must not be taken for one about the turn
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
		l.o.Log.Warn("a turn is refused by the memory and put aside; see graphiti-proxy queue list --state dead")
		reason := clip(l.o.Redact(graphiti.Sanitize(err)))
		return l.note(b.w, b.group, func() error { return l.o.Ledger.MarkDead(items[0], reason) })
	case l.confirm() && !unsent(err):
		l.inFlight(b, items, true, began) // accepted or not: who knows
		return err
	}
	return errors.Join(err, l.requeue(b, items, err.Error()))
}

// gavePart draws the consequences of a call that ended in the middle: what was
// accepted is in flight, the turn in which it ended is in doubt, and the others
// were not sent.
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
	if done == len(items) { // cannot be: something was not accepted
		return part
	}
	rest := done
	switch {
	case left > 0 || graphiti.Retryable(part.Err) && !unsent(part.Err):
		l.inFlight(b, items[done:done+1], true, began)
		rest++
	case !graphiti.Retryable(part.Err):
		return l.give(ctx, b, items[done:]) // by itself it is put aside
	}
	return errors.Join(part, l.requeue(b, items[rest:], part.Error()))
}

// dated changes timestamps that lie after the memory's now.
func (l *Loop) dated(items []Item) {
	now := graphiti.Now(l.o.Memory.Clock())
	for i := range items {
		for j := range items[i].Messages {
			if msg := &items[i].Messages[j]; msg.Timestamp.After(now) { // Graphiti hides what lies in the future
				msg.Timestamp = now.UTC()
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

// delivered marks items as delivered where the memory's acceptance proves it.
func (l *Loop) delivered(b *batch, items []Item, began time.Time) error {
	if len(items) == 0 {
		return nil
	}
	l.tell(items, began, false, nil)
	err := l.note(b.w, b.group, func() error { return l.o.Ledger.MarkDelivered(items, false) })
	l.o.OnStored(b.group.name)
	return err
}

// requeue has items wait again.
func (l *Loop) requeue(b *batch, items []Item, reason string) error {
	if len(items) == 0 {
		return nil
	}
	return l.note(b.w, b.group, func() error { return l.o.Ledger.Requeue(items, clip(reason)) })
}

// note writes something to the ledger. Where that fails it is tried again
// before anything else is done for the group: a turn that is marked as sent and
// is not in flight would wait for the next start.
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

// settle writes to the ledger what could not be written before.
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

// wrote notes that a call which sends turns begins, or has ended.
func (l *Loop) wrote() {
	l.mu.Lock()
	l.writes++
	l.wroteAt = time.Now()
	l.mu.Unlock()
}

// tell tells of deliveries.
func (l *Loop) tell(items []Item, began time.Time, verified bool, err error) {
	for i := range items {
		if t := items[i].Turn.Trace; t != "" {
			l.o.OnDelivered(Delivery{Trace: t, Group: items[i].Group, Began: began, Verified: verified, Err: err})
		}
	}
}

// retryIn is the wait before the next attempt: exponential, with full jitter,
// and never shorter than the server asked for.
func retryIn(attempts int, err error) time.Duration {
	most := min(firstRetry<<min(attempts, 10), lastRetry)
	return max(rand.N(most)+1, retryAfter(err)) // #nosec G404 -- spreads load, no secret
}

// retryAfter is how long the server asked for no calls, within reason.
func retryAfter(err error) time.Duration {
	var status *graphiti.StatusError
	if errors.As(err, &status) {
		return min(status.RetryAfter, maxRetryAfter)
	}
	return 0
}
