package capture

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// Retries need not become rare: a memory that is down is left alone by the
	// gate.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 20 * time.Second

	// maxRetryAfter bounds what a server may ask for.
	maxRetryAfter = time.Hour

	// parallel is how many calls are made at the same time.
	parallel = 8

	// upkeep is how often old entries are looked for.
	upkeep = time.Minute
)

// run is the loop that performs what the state decides: for each group in
// order, the groups side by side. When it is to stop it delivers what is due,
// unless that would leave it in doubt.
func (p *Pipeline) run() {
	defer close(p.ended)
	finished := make(chan struct{}, parallel)
	active, stopping := 0, false
	stop := p.stop
	clean := time.NewTicker(upkeep)
	defer clean.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := upkeep
		for active < parallel && p.base.Err() == nil {
			var a action
			if a, wait = p.next(stopping); a.kind == nothing {
				break
			}
			active++
			// Ends with its calls, which Timeout bounds and abort cancels.
			go p.perform(a, finished)
		}
		if stopping && active == 0 {
			return
		}
		timer.Reset(wait)
		select {
		case <-finished:
			active--
		case <-p.wake:
		case <-timer.C:
		case now := <-clean.C:
			p.upkeepNow(now)
		case <-stop:
			stopping, stop = true, nil
		}
	}
}

// next asks the state.
func (p *Pipeline) next(stopping bool) (action, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || !p.leadsLocked() {
		return action{}, upkeep
	}
	now := time.Now()
	if p.state.stall(now) {
		p.opts().Log.Error("the memory accepts messages and keeps none; nothing is sent until it does, and nothing is lost",
			"since", p.state.stalled, "waiting", p.held.Pending.Turns, "to_do", p.stallLocked().Remedy())
	}
	if stopping && p.confirm {
		return action{}, upkeep // there is no time to see anything arrive
	}
	a, wait := p.state.next(now)
	if a.kind != nothing && p.team != nil {
		p.team.busy.Add(1)
	}
	return a, wait
}

// perform does what was decided.
func (p *Pipeline) perform(a action, finished chan<- struct{}) {
	defer func() {
		if p.team != nil {
			p.team.busy.Done()
		}
		finished <- struct{}{}
	}()
	err := contained(func() error {
		switch a.kind {
		case handOver:
			p.handOver(a)
		case look:
			p.look(a)
		case sendProbe:
			p.sendProbe()
		case lookForProbe:
			p.lookForProbe(a)
		case knock:
			p.knock()
		case nothing:
		}
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.opts().Log.Error("delivery goes on after a mistake in it", "error", err)
		p.state.broke(a, time.Now())
	}
	p.state.finish(a)
}

// knock asks whether the memory is up again; the gate draws the consequences.
func (p *Pipeline) knock() {
	err := contained(func() error { return p.call(func(context.Context) error { return nil }) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.knocked = false
	if now := time.Now(); err != nil && !p.state.paused.After(now) {
		p.state.pause(now.Add(firstRetry)) // it was too early for the gate
	}
}

// handOver hands the first turns of a group over.
func (p *Pipeline) handOver(a action) {
	var entries []ledger.Entry
	rest, stored := false, false
	err := contained(func() (err error) {
		if err = p.putBack(a.lane); err != nil {
			return err
		}
		if entries, err = p.spool.Next(p.base, a.lane.group, a.n); err != nil {
			return err
		}
		if entries, rest = p.together(a, entries); len(entries) == 0 {
			return nil
		}
		var n int
		n, err = p.give(a.lane, entries)
		stored = n > 0
		return err
	})
	p.handedOver(a, entries, rest, err)
	if stored && p.opts().OnStored != nil {
		p.opts().OnStored(a.lane.group)
	}
}

// together leaves of entries what may go in one call: a suspect goes alone, and
// waits where others are under way. rest says that something was left.
func (p *Pipeline) together(a action, entries []ledger.Entry) (now []ledger.Entry, rest bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range entries {
		switch {
		case !p.state.timing.suspect(&entries[i]) || i == 0 && a.alone:
			continue
		case i == 0:
			a.lane.suspect = true
		}
		return entries[:i], true
	}
	return entries, len(entries) == a.n && len(entries) > 0
}

// handedOver tells the state what came of a hand-over; rest says that there may
// be more to hand over.
func (p *Pipeline) handedOver(a action, entries []ledger.Entry, rest bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		a.lane.failures, a.lane.next = 0, time.Time{}
		if rest {
			a.lane.ready, a.lane.fresh = true, a.lane.fresh || len(entries) == 0 || !entries[len(entries)-1].Later
		}
		p.workedLocked(a)
		return
	}
	wait := retryIn(a.lane.failures, err)
	p.state.failed(a.lane, len(entries) == 0 || !entries[0].Later, time.Now().Add(wait))
	p.failedLocked(a, err)
}

// give hands entries over in one call. Where something in them is refused it
// is narrowed down, half by half, and the rest gets through. It returns how
// many are known to be kept.
func (p *Pipeline) give(l *lane, entries []ledger.Entry) (kept int, err error) {
	if len(entries) == 0 {
		return 0, nil
	}
	messages, turns := p.messages(entries)
	var start, acked int64
	if p.confirm {
		if err := p.spool.MarkSent(l.group, entries); err != nil {
			return 0, errors.Join(err, p.giveUp(l, entries, err))
		}
		start = p.ticks(turns)
	}
	if len(messages) > 0 {
		p.gave()
		err = p.call(func(ctx context.Context) error { return p.write(ctx, l.group, messages) })
		p.gave()
	}
	if p.confirm {
		acked = p.ticks(nil)
	}
	var part *graphiti.PartError
	switch {
	case errors.As(err, &part):
		return p.gavePart(l, entries, turns, part, start, acked)
	case err == nil && p.confirm && len(messages) > 0:
		p.underWay(l, turns, start, acked, false)
		return 0, nil
	case err == nil:
		p.tell(l.group, entries, handedAt(turns), p.opts().Memory.Durable(), nil)
		return len(entries), p.orBack(l, entries, p.settle(l.group, entries, p.opts().Memory.Durable()))
	case !graphiti.Retryable(err) && len(entries) > 1:
		half := len(entries) / 2
		if kept, err = p.give(l, entries[:half]); err != nil {
			return kept, errors.Join(err, p.giveUp(l, entries[half:], err))
		}
		more, err := p.give(l, entries[half:])
		return kept + more, err
	case !graphiti.Retryable(err):
		p.tell(l.group, entries, handedAt(turns), false, errDead)
		return 0, p.orBack(l, entries, p.bury(l.group, &entries[0], p.Redacted(graphiti.Sanitize(err, messages))))
	case p.confirm && !unsent(err):
		p.underWay(l, turns, start, acked, true) // accepted or not: who knows
		return 0, err
	}
	return 0, errors.Join(err, p.giveUp(l, entries, err))
}

// gavePart draws the consequences of a call that ended in the middle: what was
// accepted is under way, the turn in which it ended is looked for, and the
// others were not sent.
func (p *Pipeline) gavePart(l *lane, entries []ledger.Entry, turns []*under, part *graphiti.PartError, start, acked int64) (int, error) {
	done, left := 0, part.Accepted
	for done < len(turns) && len(turns[done].names) <= left {
		left -= len(turns[done].names)
		done++
	}
	if !p.confirm { // acceptance is delivery
		p.tell(l.group, entries[:done], handedAt(turns), false, nil)
		err := p.orBack(l, entries[:done], p.settle(l.group, entries[:done], false))
		return done, errors.Join(part, err, p.giveUp(l, entries[done:], part))
	}
	if done > 0 {
		p.underWay(l, turns[:done], start, acked, false)
	}
	if done == len(turns) { // cannot be: something was not accepted
		return 0, part
	}
	rest := done
	if left > 0 || graphiti.Retryable(part.Err) && !unsent(part.Err) {
		p.underWay(l, turns[done:done+1], start, acked, true)
		rest++
	} else if !graphiti.Retryable(part.Err) {
		kept, err := p.give(l, entries[done:]) // alone it is put aside
		return kept, err
	}
	return 0, errors.Join(part, p.giveUp(l, entries[rest:], part))
}

// gave notes that a call which hands something over begins, or has ended.
func (p *Pipeline) gave() {
	p.mu.Lock()
	p.given++
	p.gaveAt = time.Now()
	p.mu.Unlock()
}

// giveUp has entries wait again.
func (p *Pipeline) giveUp(l *lane, entries []ledger.Entry, err error) error {
	if errors.Is(err, errNotTried) && !p.confirm {
		return nil
	}
	return p.orBack(l, entries, p.spool.Requeue(l.group, entries, clip(err.Error(), ledger.MaxReason)))
}

// orBack takes care of entries that the memory does not have, when something
// about them could not be written down: the spool may have them as handed over,
// and then nobody would look at them again before the next start.
func (p *Pipeline) orBack(l *lane, entries []ledger.Entry, err error) error {
	if err != nil && p.confirm {
		l.back = append(l.back, entries...)
	}
	return err
}

// putBack has entries wait of which that could not be written down, before
// anything else is done for their group.
func (p *Pipeline) putBack(l *lane) error {
	if len(l.back) == 0 {
		return nil
	}
	if err := p.spool.Requeue(l.group, l.back, "what became of it could not be written down"); err != nil {
		return err
	}
	l.back = nil
	return nil
}

// messages are those of the entries, and the turns as they are followed.
func (p *Pipeline) messages(entries []ledger.Entry) (messages []graphiti.Message, turns []*under) {
	now := graphiti.Now(p.opts().Memory.Clock())
	for i := range entries {
		u, own := p.track(entries[i], now)
		messages, turns = append(messages, own...), append(turns, u)
	}
	return messages, turns
}

// track is a turn as it is followed until it is seen, and its messages, which
// speak of no later time than now.
func (p *Pipeline) track(e ledger.Entry, now time.Time) (*under, []graphiti.Message) {
	u := &under{entry: e, names: make(map[string]ledger.Sides, 2), times: make(map[string]time.Time, 2), at: time.Now()}
	messages := messagesOf(&e.Turn, e.Scope, e.Have, p.opts().MaxChars, now)
	for _, m := range messages {
		side := ledger.SideUser
		if m.RoleType == graphiti.RoleAssistant {
			side = ledger.SideAssistant
		}
		u.names[m.Name], u.times[m.Name] = side, m.Timestamp
		if u.said.IsZero() || m.Timestamp.Before(u.said) {
			u.said = m.Timestamp
		}
		if m.Timestamp.After(u.until) {
			u.until = m.Timestamp
		}
	}
	return u, messages
}

// ticks lets the logical clock go on, one tick for the call and one for each
// turn, and returns the call's.
func (p *Pipeline) ticks(turns []*under) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	start := p.state.tick()
	for _, u := range turns {
		u.tick = p.state.tick()
	}
	return start
}

func (p *Pipeline) underWay(l *lane, turns []*under, start, acked int64, doubt bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range turns {
		u.start, u.acked, u.doubt, u.alone = start, acked, doubt, l.solo
		if doubt {
			u.acked, u.ended = math.MaxInt64, time.Now()
		}
	}
	p.state.handed(l, turns, time.Now())
}

// settle notes that the group has the entries.
func (p *Pipeline) settle(group string, entries []ledger.Entry, verified bool) error {
	gone, err := p.spool.MarkDelivered(group, entries, verified, time.Now())
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.Pending = p.held.Pending.Minus(gone)
	p.totals.Delivered += gone.Turns
	if verified {
		p.totals.Verified += gone.Turns
	}
	return nil
}

// bury puts a turn aside that the memory refuses.
func (p *Pipeline) bury(group string, e *ledger.Entry, reason string) error {
	if err := p.putAside(group, e, reason); err != nil {
		return err
	}
	p.mu.Lock()
	if len(p.refused.numbers) < maxRefused+parallel {
		p.refused.numbers = append(p.refused.numbers, e.Seq)
	}
	p.mu.Unlock()
	return nil
}

// putAside puts a turn aside that the memory will not take.
func (p *Pipeline) putAside(group string, e *ledger.Entry, reason string) error {
	gone, err := p.spool.MarkDead(group, e, clip(reason, ledger.MaxReason))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.held.Pending = p.held.Pending.Minus(gone)
	p.held.Dead = p.held.Dead.Plus(gone)
	p.mu.Unlock()
	p.opts().Log.Warn("a turn is refused by the memory and put aside; see graphiti-proxy queue list --state dead")
	return nil
}

// call makes one call to the memory, bounded in time. Whatever was asked, a
// memory that wants to be left alone is.
func (p *Pipeline) call(f func(context.Context) error) error {
	p.mu.Lock()
	calls := p.calls
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(calls, p.opts().Timeout)
	defer cancel()
	err := p.gate.call(ctx, f)
	if asked := retryAfter(err); asked > 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.state.leaveAlone(time.Now().Add(asked))
	}
	return err
}

// retryIn is the wait before the next attempt: exponential, with full jitter,
// and never shorter than the server asked for.
func retryIn(attempts int, err error) time.Duration {
	most := min(firstRetry<<min(attempts, 10), lastRetry)
	return max(rand.N(most)+1, retryAfter(err)) // #nosec G404 -- spreads load, no secret
}

// retryAfter is how long the server asked to be left alone, within reason.
func retryAfter(err error) time.Duration {
	var status *graphiti.StatusError
	if errors.As(err, &status) {
		return min(status.RetryAfter, maxRetryAfter)
	}
	return 0
}

// contained turns a panic into an error: delivery goes on.
func contained(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("delivery panicked: %v", r)
		}
	}()
	return f()
}
