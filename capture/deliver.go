package capture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 2 * time.Minute

	// parallel is how many groups are delivered to at the same time.
	parallel = 8

	// upkeep is how often old entries are looked for.
	upkeep = time.Minute
)

// run is the loop that delivers: for each group in order, the groups side by
// side. It owns the choice of what is next; a delivery under way is marked in
// its lane.
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
		for active < parallel && p.base.Err() == nil {
			group, ok := p.nextGroup(time.Now())
			if !ok {
				break
			}
			active++
			// Ends with its call, which Timeout bounds and abort cancels.
			go p.deliverGroup(group, finished)
		}
		if stopping && active == 0 {
			return
		}
		timer.Reset(p.untilDue(time.Now()))
		select {
		case <-finished:
			active--
		case <-p.wake:
		case <-timer.C:
		case now := <-clean.C:
			p.dropOld(now)
		case <-stop:
			stopping, stop = true, nil
		}
	}
}

// nextGroup picks a group that is due, and marks it.
func (p *Pipeline) nextGroup(now time.Time) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for g, l := range p.groups {
		if !l.active && l.ready && !l.next.After(now) {
			l.active, l.ready = true, false
			return g, true
		}
	}
	return "", false
}

// untilDue is how long nothing will be due.
func (p *Pipeline) untilDue(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := upkeep
	for _, l := range p.groups {
		if !l.active && l.ready {
			wait = min(wait, max(l.next.Sub(now), 0))
		}
	}
	return wait
}

// deliverGroup makes one call for a group.
func (p *Pipeline) deliverGroup(group string, finished chan<- struct{}) {
	defer func() { finished <- struct{}{} }()
	sent, wait, err := p.deliver(group)
	p.mu.Lock()
	l := p.groups[group]
	l.active = false
	l.ready = l.ready || err != nil || sent > 0 // there may be more
	if err != nil {
		l.next = time.Now().Add(wait)
		p.status.LastError = bounded(err.Error())
		if p.status.Failing == nil {
			now := time.Now()
			p.status.Failing = &now
			p.o.Log.Warn("turns cannot be delivered and wait", "error", err)
		}
	} else {
		l.next = time.Time{}
		if p.status.Failing != nil && sent > 0 {
			p.status.Failing, p.status.LastError = nil, ""
			p.o.Log.Info("turns are delivered again")
		}
	}
	p.tidyLocked(group)
	p.mu.Unlock()
	if sent > 0 && p.o.OnStored != nil {
		p.o.OnStored(group)
	}
}

// deliver hands the first turns of a group over, and says how many left the
// queue. On failure it says how long to wait.
func (p *Pipeline) deliver(group string) (sent int, wait time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			wait, err = lastRetry, fmt.Errorf("delivery panicked: %v", r)
		}
	}()
	entries, err := p.spool.head(p.base, group, p.o.MaxBatch)
	if err != nil {
		return 0, lastRetry, err
	}
	if len(entries) == 0 {
		return 0, 0, nil
	}
	err = p.hand(group, entries)
	if err != nil && len(entries) > 1 && !graphiti.Retryable(err) {
		// Something in the batch is refused: one by one, the rest gets through.
		entries = entries[:1]
		err = p.hand(group, entries)
	}
	var size backlog
	for i := range entries {
		size = backlog{size.turns + 1, size.bytes + entries[i].bytes}
	}
	switch {
	case err == nil:
		if err := p.spool.done(group, entries, time.Now()); err != nil {
			return 0, lastRetry, err
		}
		p.count(group, size, func(s *QueueStatus) {
			s.Delivered += size.turns
			if p.o.Memory.Durable() {
				s.Verified += size.turns
			}
		})
		return size.turns, 0, nil
	case !graphiti.Retryable(err):
		p.o.Log.Warn("a turn is refused and put aside", "error", err)
		if err := p.spool.failed(entries, bounded(err.Error()), true); err != nil {
			return 0, lastRetry, err
		}
		p.count(group, size, func(s *QueueStatus) { s.Dead += size.turns })
		return size.turns, 0, nil
	}
	if noteErr := p.spool.failed(entries, bounded(err.Error()), false); noteErr != nil {
		p.o.Log.Warn("an attempt cannot be noted", "error", noteErr)
	}
	return 0, retryIn(entries[0].attempts, err), err
}

func (p *Pipeline) count(group string, b backlog, note func(*QueueStatus)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countLocked(group, backlog{-b.turns, -b.bytes})
	note(&p.status)
}

// hand makes the call.
func (p *Pipeline) hand(group string, entries []entry) error {
	var messages []graphiti.Message
	for i := range entries {
		messages = append(messages, entries[i].turn.messages(entries[i].scope, p.o.MaxChars, time.Now())...)
	}
	if len(messages) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(p.base, p.o.Timeout)
	defer cancel()
	if err := p.o.Memory.Write(ctx, group, messages); err != nil {
		return fmt.Errorf("deliver turns: %w", err)
	}
	return nil
}

// retryIn is the wait before the next attempt: exponential, with full jitter,
// and never shorter than the server asked for.
func retryIn(attempts int, err error) time.Duration {
	most := min(firstRetry<<min(attempts, 10), lastRetry)
	wait := rand.N(most) + 1 // #nosec G404 -- spreads load, no secret
	var status *graphiti.StatusError
	if errors.As(err, &status) {
		wait = max(wait, min(status.RetryAfter, lastRetry))
	}
	return wait
}

// dropOld removes what has waited too long, and what need not be remembered
// any more.
func (p *Pipeline) dropOld(now time.Time) {
	gone, err := p.spool.dropBefore(now.Add(-p.o.MaxAge))
	if err == nil {
		p.forget(gone, "they waited longer than ingest.max_age")
		err = p.spool.forgetSeen(now)
	}
	if err != nil {
		p.o.Log.Warn("the spool cannot be cleaned", "error", err)
	}
}

// bounded shortens what a server says.
func bounded(s string) string { return clip(s, 300) }
