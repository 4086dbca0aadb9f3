package capture

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// holdFor is the longest time that a turn is held.
	holdFor = 30 * time.Minute

	// maxHeld is the most held turns. Further ones are recorded at once.
	maxHeld = 1000
)

// doubts are the held turns: each is recorded if its session continues with it, dropped
// if its session continues without it, and otherwise recorded after holdFor. Their texts are
// on disk only.
type doubts struct {
	disk *ledger.Ledger
	wake chan struct{} // the verdict on a turn is known

	mu   sync.Mutex // protects the fields below
	n    int
	refs map[string][]*heldRef // by session
}

// heldRef refers to a held turn.
type heldRef struct {
	key, session string
	before, with dialect.Fingerprint
	client       string
	at           time.Time
	keep, drop   bool
}

func newDoubts() doubts {
	return doubts{wake: make(chan struct{}, 1), refs: make(map[string][]*heldRef)}
}

// load reads the turns that the last process held.
func (d *doubts) load(log *slog.Logger) {
	err := d.disk.EachHeld("", func(h *ledger.Held) error {
		d.add(h)
		return nil
	})
	if err != nil {
		log.Warn("read held turns failed", "error", err)
	}
}

func (d *doubts) add(h *ledger.Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	refs := d.refs[h.Turn.Session]
	if !slices.ContainsFunc(refs, func(r *heldRef) bool { return r.key == h.Key }) {
		d.addLocked(&heldRef{key: h.Key, session: h.Turn.Session, client: h.Turn.Client, before: h.Before, with: h.With, at: h.At})
	}
}

func (d *doubts) addLocked(r *heldRef) {
	d.refs[r.session] = append(d.refs[r.session], r)
	d.n++
}

// retry returns a turn that could not be recorded.
func (d *doubts) retry(r *heldRef) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addLocked(r)
}

func (d *doubts) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n
}

// Hold stores a turn on disk until its session shows whether it is one. before is the
// fingerprint of the conversation before the person's message, and with includes it. If the
// turn cannot be held, it is recorded at once.
func (p *Pipeline) Hold(ctx context.Context, t ledger.Turn, reason string, before, with dialect.Fingerprint) (graphiti.Fate, error) {
	stored := graphiti.Fate{Name: graphiti.FateStored}
	if len(t.Targets) == 0 || p.recent.has(t.ID, t.Targets) {
		return stored, nil
	}
	if p.isClosed() || p.doubts.count() >= maxHeld {
		return stored, p.Add(ctx, t)
	}
	p.clean(&t)
	h := ledger.Held{Key: pendingKey(&t), Turn: t, Before: before, With: with, At: time.Now(), Reason: reason}
	if err := p.doubts.disk.Hold(&h); err != nil {
		return stored, p.Add(ctx, t)
	}
	p.doubts.add(&h)
	return graphiti.Fate{Name: graphiti.FateHeld, Reason: reason, Until: h.At.Add(holdFor)}, nil
}

// HeldUntil returns the end of a hold.
func HeldUntil(h *ledger.Held) time.Time { return h.At.Add(holdFor) }

// Holds returns the number of held turns of a session.
func (p *Pipeline) Holds(session string) int {
	p.doubts.mu.Lock()
	defer p.doubts.mu.Unlock()
	return len(p.doubts.refs[session])
}

// Held returns the held turns of a part.
func (p *Pipeline) Held(part ledger.Part) (list []ledger.Held, err error) {
	err = p.doubts.disk.EachHeld("", func(h *ledger.Held) error {
		if part.Means(&h.Turn) {
			list = append(list, *h)
		}
		return nil
	})
	return list, err
}

// Settle records or deletes a held turn, as its person decides.
func (p *Pipeline) Settle(h *ledger.Held, keep bool) error {
	p.doubts.remove(h)
	if keep {
		return p.recordHeld(h.Key)
	}
	p.settled(&h.Turn, graphiti.FateOff, graphiti.OffOptOut)
	return p.doubts.disk.Unhold(h.Key)
}

// fates reports the fates of turns after their answers.
type fates struct {
	report atomic.Pointer[func(client string, f graphiti.Fate)] // nil before OnFate
}

// OnFate sets the function that is called with a turn's client and fate.
func (s *fates) OnFate(report func(client string, f graphiti.Fate)) { s.report.Store(&report) }

func (s *fates) settled(t *ledger.Turn, name graphiti.FateName, reason string) {
	if f := s.report.Load(); f != nil {
		(*f)(t.Client, graphiti.Fate{Name: name, Reason: reason})
	}
}

func (d *doubts) remove(h *ledger.Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	refs := d.refs[h.Turn.Session]
	rest := slices.DeleteFunc(refs, func(r *heldRef) bool { return r.key == h.Key })
	d.n -= len(refs) - len(rest)
	if d.refs[h.Turn.Session] = rest; len(rest) == 0 {
		delete(d.refs, h.Turn.Session)
	}
}

// GoesOn reports that a session continues with a history, given by its fingerprints. A held
// turn in the history is recorded. If drops is set, one that the history lacks is dropped: a
// request that may be no turn itself, such as another one for a title, is no evidence of that.
// GoesOn does not wait.
func (p *Pipeline) GoesOn(session string, history []dialect.Fingerprint, drops bool) {
	d := &p.doubts
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.refs[session] {
		r.keep = r.keep || slices.Contains(history, r.with)
		r.drop = !r.keep && (r.drop || drops && slices.Contains(history, r.before))
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// take removes and returns the turns to record, and to drop.
func (d *doubts) take(now time.Time) (keep, drop []*heldRef) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for session, refs := range d.refs {
		rest := slices.DeleteFunc(refs, func(r *heldRef) bool {
			switch {
			case r.drop:
				drop = append(drop, r)
			case r.keep || now.Sub(r.at) >= holdFor:
				keep = append(keep, r)
			default:
				return false
			}
			d.n--
			return true
		})
		if d.refs[session] = rest; len(rest) == 0 {
			delete(d.refs, session)
		}
	}
	return keep, drop
}

// runDoubts settles held turns until Shutdown.
func (p *Pipeline) runDoubts() {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		case <-p.doubts.wake:
		}
		p.settleDoubts(time.Now())
	}
}

// settleDoubts records and drops the held turns with a verdict.
func (p *Pipeline) settleDoubts(now time.Time) {
	keep, drop := p.doubts.take(now)
	for _, r := range keep {
		if err := p.recordHeld(r.key); err != nil {
			p.log.Warn("store held turn failed, retrying", "error", err)
			p.doubts.retry(r)
		}
	}
	for _, r := range drop {
		p.settled(&ledger.Turn{Client: r.client}, graphiti.FateAbout, graphiti.AboutDropped)
		if err := p.doubts.disk.Unhold(r.key); err != nil {
			p.log.Warn("delete held turn failed", "error", err)
		}
	}
}

// recordHeld records a held turn, and then deletes it from the held ones.
func (p *Pipeline) recordHeld(key string) error {
	var turns []ledger.Turn
	err := p.doubts.disk.EachHeld(key, func(h *ledger.Held) error {
		turns = append(turns, h.Turn)
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := p.AddAll(context.Background(), turns); err != nil {
		return err
	}
	for i := range turns {
		p.settled(&turns[i], graphiti.FateStored, "")
	}
	return p.doubts.disk.Unhold(key)
}

// forget deletes the held turns of a part that are older than a generation.
func (d *doubts) forget(part ledger.Part, generation int64) error {
	var keys []string
	err := d.disk.EachHeld("", func(h *ledger.Held) error {
		if part.Message == "" && part.Means(&h.Turn) && h.Turn.Generation < generation {
			keys = append(keys, h.Key)
		}
		return nil
	})
	for _, key := range keys {
		if err == nil {
			err = d.disk.Unhold(key)
		}
	}
	return err
}
