package capture

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
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

	// twinFor is the time in which a turn shows that a held one is a program's question about
	// its message. Of two held ones, one has pairFor to continue.
	twinFor = 2 * time.Second
	pairFor = time.Minute

	// maxHeld is the most held turns. Further ones are recorded at once.
	maxHeld = 1000

	maxBegun  = 64 // turns that held ones may be about
	maxWent   = 64 // requests, and messages of each, that held histories may be in
	minQuoted = 24 // bytes; programs shorten the messages of agents in a title's request
)

// doubts are the held turns: each is recorded if its session continues with it, dropped
// if its session continues without it, and otherwise recorded at the end of its hold. Their
// texts are on disk only.
type doubts struct {
	disk   holdStore
	wake   chan struct{}      // receives a value after the verdict on a turn
	passes chan chan struct{} // of settleDoubts, with the channel to close at the end

	mu    sync.Mutex // protects the fields below
	refs  []*heldRef
	begun []begunTurn // the newest turns, for twins
	went  []wentOn    // the newest requests of sessions: a history may be held after the next one
}

// holdStore stores turns outside of all groups.
type holdStore interface {
	Hold(h *ledger.Held) error
	EachHeld(key string, f func(h *ledger.Held) error) error
	Unhold(key string) error
}

// heldRef refers to a held turn.
type heldRef struct {
	Doubt
	key, session string
	turn, client string
	at, until    time.Time
	keep, drop   bool
}

// wentOn is the end of the history of a request that continued a session.
type wentOn struct {
	session string
	history []dialect.Fingerprint
}

// Doubt is the reason for holding a turn, and the evidence that decides it.
type Doubt struct {
	Reason       string
	Before, With dialect.Fingerprint // the conversation before and with the person's message
	Twin         Twin                // for the reason HeldTwin
}

// load reads the turns that the last process held.
func (d *doubts) load(log *slog.Logger) {
	err := d.disk.EachHeld("", func(h *ledger.Held) error {
		d.add(h, Twin{})
		return nil
	})
	if err != nil {
		log.Warn("read held turns failed", "error", err)
	}
}

// add adds a held turn, and returns the end of its hold.
func (d *doubts) add(h *ledger.Held, twin Twin) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	ref := &heldRef{Doubt: Doubt{h.Reason, h.Before, h.With, twin}, key: h.Key, session: h.Turn.Session, turn: h.Turn.ID, client: h.Turn.Client, at: h.At, until: h.At.Add(holdFor)}
	if h.Reason == graphiti.HeldTwin && len(twin.Whole) == 0 { // of the last process: its turn may continue
		ref.until = time.Now().Add(pairFor)
	} else if h.Reason == graphiti.HeldTwin && !d.isAboutOpen(&twin) {
		ref.until = h.At.Add(twinFor)
	}
	ref.drop = d.isAbout(&twin) // its turn was stored meanwhile
	ref.keep = h.Reason == graphiti.HeldHistory && slices.ContainsFunc(d.went, func(w wentOn) bool { return w.session == ref.session && slices.Contains(w.history, ref.With) })
	for _, r := range d.refs {
		if ref.isPair(r) {
			r.until, ref.until = h.At.Add(pairFor), h.At.Add(pairFor)
		}
	}
	if !slices.ContainsFunc(d.refs, func(r *heldRef) bool { return r.key == ref.key }) {
		d.refs = append(d.refs, ref)
	}
	if time.AfterFunc(time.Until(ref.until), d.settle); ref.keep {
		d.settle()
	}
	return ref.until
}

// settle starts settleDoubts. It does not wait.
func (d *doubts) settle() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// retry returns a turn that could not be recorded.
func (d *doubts) retry(r *heldRef) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refs = append(d.refs, r)
}

func (d *doubts) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.refs)
}

// brief returns the number of turns whose hold ends in a moment.
func (d *doubts) brief() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.refs {
		if r.Reason == graphiti.HeldTwin && r.until.Sub(r.at) <= twinFor {
			n++
		}
	}
	return n
}

// Hold stores a turn on disk until its session, or a twin, shows whether it is one. If the turn
// cannot be held, it is recorded at once.
func (p *Pipeline) Hold(ctx context.Context, t ledger.Turn, why *Doubt) (graphiti.Fate, error) {
	stored, isOld := graphiti.Fate{Name: graphiti.FateStored}, why.Reason == graphiti.HeldHistory
	if len(t.Targets) == 0 || p.recent.has(t.ID, t.Targets) {
		return stored, nil
	}
	if full := p.isClosed() || p.doubts.count() >= maxHeld; full && isOld { // the history contains it
		return graphiti.Fate{Name: graphiti.FateClient, Reason: why.Reason}, nil
	} else if full {
		return stored, p.Add(ctx, t)
	}
	p.doubts.mu.Lock()
	isAbout := p.doubts.isAbout(&why.Twin)
	p.doubts.mu.Unlock()
	if isAbout {
		return graphiti.Fate{Name: graphiti.FateAbout, Reason: graphiti.AboutTwin}, nil
	}
	p.clean(&t)
	h := ledger.Held{Key: pendingKey(&t), Turn: t, Before: why.Before, With: why.With, At: time.Now(), Reason: why.Reason}
	if why.Reason == graphiti.HeldTwin { // both may be one turn
		h.Key += strconv.FormatUint(why.Twin.Prompt, 36)
	}
	if err := p.doubts.disk.Hold(&h); err != nil && isOld {
		return stored, err
	} else if err != nil {
		return stored, p.Add(ctx, t)
	}
	return graphiti.Fate{Name: graphiti.FateHeld, Reason: why.Reason, Until: p.doubts.add(&h, why.Twin)}, nil
}

// HeldUntil returns the end of a hold. Of twins, it is the earliest.
func HeldUntil(h *ledger.Held) time.Time {
	if h.Reason == graphiti.HeldTwin {
		return h.At.Add(twinFor)
	}
	return h.At.Add(holdFor)
}

// Holds returns the number of held turns of a session.
func (p *Pipeline) Holds(session string) int {
	p.doubts.mu.Lock()
	defer p.doubts.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(p.doubts.refs), func(r *heldRef) bool { return r.session != session }))
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
	was    graphiti.FateName                                                           // their fate before
	report atomic.Pointer[func(client string, was graphiti.FateName, f graphiti.Fate)] // nil before OnFate
}

// OnFate sets the function that is called with a turn's client, former and new fate.
func (s *fates) OnFate(report func(client string, was graphiti.FateName, f graphiti.Fate)) {
	s.report.Store(&report)
}

func (s *fates) settled(t *ledger.Turn, name graphiti.FateName, reason string) {
	if f := s.report.Load(); f != nil {
		(*f)(t.Client, s.was, graphiti.Fate{Name: name, Reason: reason})
	}
}

func (d *doubts) remove(h *ledger.Held) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refs = slices.DeleteFunc(d.refs, func(r *heldRef) bool { return r.key == h.Key })
}

// GoesOn reports that a session continues with a history, given by its fingerprints. A held
// turn in the history is recorded. If drops is set, one that the history lacks is dropped: a
// request that may be no turn itself, such as another one for a title, is no evidence of that.
// GoesOn does not wait.
func (p *Pipeline) GoesOn(session string, history []dialect.Fingerprint, drops bool) {
	d := &p.doubts
	d.mu.Lock()
	defer d.mu.Unlock()
	d.went = append(d.went[max(0, len(d.went)-maxWent+1):], wentOn{session, slices.Clone(history[max(0, len(history)-maxWent):])})
	for _, r := range d.refs {
		if r.session == session {
			r.keep = r.keep || slices.Contains(history, r.With)
			r.drop = !r.keep && (r.drop || drops && slices.Contains(history, r.Before))
		}
	}
	d.settle()
}

// judge decides on a turn whose session continues, or whose time is over: its twin loses or
// wins. A history without a later request may be examples in a prompt.
func (d *doubts) judge(r *heldRef, now time.Time) {
	if r.drop || !r.keep && now.Before(r.until) {
		return
	}
	r.drop = !r.keep && r.Reason == graphiti.HeldHistory
	for _, o := range d.refs {
		r.drop = r.drop || (o.keep || !r.keep) && r.yields(o)
	}
	r.keep = !r.drop
	for _, o := range d.refs {
		o.drop = o.drop || r.keep && r.isPair(o) && (!o.keep || o.yields(r))
	}
}

// take removes and returns the turns to record, and to drop.
func (d *doubts) take(now time.Time) (keep, drop []*heldRef) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.refs {
		d.judge(r, now)
	}
	d.refs = slices.DeleteFunc(d.refs, func(r *heldRef) bool {
		switch {
		case r.drop:
			drop = append(drop, r)
		case r.keep:
			keep = append(keep, r)
		}
		return r.drop || r.keep
	})
	return keep, drop
}

// runDoubts settles held turns until Shutdown.
func (p *Pipeline) runDoubts() {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stopped.Done():
			return
		case <-tick.C:
			p.settleDoubts(time.Now())
		case <-p.doubts.wake:
			p.settleDoubts(time.Now())
		case ended := <-p.doubts.passes:
			p.settleDoubts(time.Now())
			close(ended)
		}
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
		fate, why := graphiti.FateAbout, graphiti.AboutDropped
		switch r.Reason {
		case graphiti.HeldTwin:
			why = graphiti.AboutTwin
		case graphiti.HeldHistory:
			fate, why = graphiti.FateClient, r.Reason
			p.recent.release([]ledger.Turn{{ID: r.turn}})
		}
		p.settled(&ledger.Turn{Client: r.client}, fate, why)
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
	if _, err := p.AddAll(context.Background(), p.withOwners(turns...)); err != nil {
		return err
	}
	for i := range turns {
		p.settled(&turns[i], graphiti.FateStored, "")
	}
	return p.doubts.disk.Unhold(key)
}

// forgetHeld deletes the held turns of a part that are older than a generation.
func (p *Pipeline) forgetHeld(part ledger.Part, generation int64) error {
	if part.Message != "" {
		return nil
	}
	held, err := p.Held(part)
	for i := range held {
		if err == nil && held[i].Turn.Generation < generation {
			err = p.Settle(&held[i], false)
		}
	}
	return err
}
