package capture

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Lease belongs to the one process that copies turns to Graphiti and reads its facts.
type Lease interface {
	// Take waits until this process has the lease. led ends when the lease is lost, or with
	// ctx; release gives the lease back.
	Take(ctx context.Context) (led context.Context, release func(), err error)
}

// maxTraces bounds the traces of turns that are not delivered yet.
const maxTraces = 1024

// outbox copies the turns of a memory to Graphiti. It implements deliver.Ledger.
type outbox struct {
	*ledger.Ledger
	p      *Pipeline
	facts  FactStore                                   // nil without facts
	lease  Lease                                       // nil if no other process uses the ledger
	says   func(ctx context.Context, text string) bool // Destination.States
	loop   *deliver.Loop
	leads  atomic.Bool                // this process has the lease
	traces *lru.Cache[string, string] // by turn
	pulls  *puller

	switching sync.Mutex         // protects end
	end       context.CancelFunc // of work; nil during a pause
	work      sync.WaitGroup
}

func (p *Pipeline) openOutbox(o *Options) (*outbox, error) {
	totals, err := p.Totals()
	if err != nil {
		return nil, err
	}
	if o.Facts != nil {
		o.Facts.Copied()
	}
	p.Copied(func(t *ledger.Turn) bool {
		return worthCopy(t) && (o.Facts == nil || !slices.ContainsFunc(messagesOf(t, graphiti.ScopeUser, p.opts().MaxChars, time.Now()), func(m graphiti.Row) bool { return o.Facts.Distils(&m) }))
	})
	b := &outbox{Ledger: p.Ledger, p: p, facts: o.Facts, lease: o.Lease, says: o.States}
	b.traces, _ = lru.New[string, string](maxTraces) // fails only for a size of 0
	b.pulls = newPuller(p, o, b.leads.Load)
	b.loop = deliver.New(deliver.Options{
		Ledger: b, Memory: o.Graph, Apart: o.Apart,
		StallAfter: func() time.Duration { return p.opts().StallAfter }, Timeout: func() time.Duration { return p.opts().Timeout },
		OnDelivered: b.delivered, Log: o.Log,
		OnSeen: b.seen,
	}, totals.Verified > 0)
	return b, nil
}

// pause ends the calls to Graphiti and prevents further ones, or resumes them until Shutdown.
func (b *outbox) pause(paused bool) {
	b.switching.Lock()
	defer b.switching.Unlock()
	switch {
	case paused && b.end != nil:
		b.end()
		b.work.Wait()
		b.end = nil
	case !paused && b.end == nil:
		ctx, end := context.WithCancel(b.p.stopped)
		b.end = end
		b.work.Go(func() { b.lead(ctx) })
		if b.pulls.from != nil {
			b.work.Go(func() { b.pulls.run(ctx) })
		}
	}
}

// lead delivers whenever this process has the lease.
func (b *outbox) lead(ctx context.Context) {
	for ctx.Err() == nil {
		led, release, err := ctx, func() {}, error(nil)
		if b.lease != nil {
			led, release, err = b.lease.Take(ctx)
		}
		if err != nil {
			b.p.log.Warn("take the lease of delivery failed, retrying", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		b.leads.Store(true)
		b.pulls.wake()
		b.loop.Run(led)
		b.leads.Store(false)
		release()
	}
}

// delivered reports the delivery of a traced turn.
func (b *outbox) delivered(d deliver.Delivery) {
	if trace, ok := b.traces.Get(d.Turn); ok && b.p.OnDelivered != nil {
		d.Trace = trace
		b.p.OnDelivered(d)
	}
}

// seen has the facts of listed episodes read.
func (b *outbox) seen(group string, episodes []graphiti.Row) {
	list := make([]ledger.Unread, len(episodes))
	for i := range episodes {
		list[i] = ledger.NewUnread(group, &episodes[i])
	}
	b.pulls.seen(list)
}

// mark records the traces of new turns, and the turns without a fact.
func (b *outbox) mark(ctx context.Context, turns []ledger.Turn) {
	for i := range turns {
		t := &turns[i]
		if t.Trace != "" {
			b.traces.Add(t.ID, t.Trace)
		}
		t.Known = t.Known || t.User != "" && !t.Asked && !b.states(ctx, t.User)
	}
}

// mostSentences is the number of sentences of a message to look for a statement in. A longer message
// may have one.
const mostSentences = 8

// states reports whether a message may state something, by its words or by the model of meaning.
func (b *outbox) states(ctx context.Context, text string) bool {
	parts := append(slices.Collect(words.Sentences(text)), text)
	return b.says == nil || words.States(text) || len(parts) > mostSentences || slices.ContainsFunc(parts, func(s string) bool { return b.says(ctx, s) })
}

// Messages returns the messages of a copy. A new one also gets the turns of its conversation that wait
// next, until one has the subject of an earlier one: Graphiti ends an earlier fact only if another episode had it.
func (b *outbox) Messages(ctx context.Context, c *ledger.Copy) ([]graphiti.Row, error) {
	list, err := b.messages(ctx, c)
	per := b.p.opts().Episodes
	if err != nil || len(list) == 0 || c.Sends > 0 || per != PerTurn {
		return episodesOf(list, per), err
	}
	waiting, err := b.Next(ctx, c.Group, maxJoined)
	for i := 0; i < len(waiting) && err == nil; i++ {
		if w := &waiting[i]; w.Seq > c.Seq {
			var more []graphiti.Row
			if more, err = b.messages(ctx, w); err != nil || w.Sends > 0 || !joins(list, more, b.p.opts().MaxChars) {
				break
			}
			list, c.Joined = append(list, more...), append(c.Joined, *w)
		}
	}
	return episodesOf(list, per), err
}

const (
	maxJoined = 16 // most turns of an episode

	// joinedWithin is the longest time between the turns of an episode, which has one time.
	joinedWithin = time.Hour

	subjectWords = 100 // most words of a message to compare
	sameSubject  = 2   // common words of two messages with the same subject
)

// joins reports whether an episode of turns takes the messages of the next one.
func joins(list, more []graphiti.Row, maxChars int) bool {
	first, size := &list[0], 0
	if len(more) == 0 || first.Role != graphiti.RoleUser || more[0].Role != graphiti.RoleUser || first.Session == "" || more[0].Session != first.Session ||
		more[0].Speaker != first.Speaker || more[0].Said.Sub(first.Said) > joinedWithin || words.Changes(more[0].Text) {
		return false
	}
	subject := words.Of(more[0].Text, subjectWords)
	for _, m := range slices.Concat(list, more) {
		if size += len(m.Text); size > maxChars {
			return false
		}
		if m.Role == graphiti.RoleUser && m.Name != more[0].Name && common(subject, words.Of(m.Text, subjectWords)) >= sameSubject {
			return false
		}
	}
	return true
}

// common returns the number of words in both lists.
func common(a, b []string) (n int) {
	for _, w := range a {
		if slices.Contains(b, w) {
			n++
		}
	}
	return n
}

// messages returns the messages of a turn. Facts that were distilled from it stand for it.
func (b *outbox) messages(ctx context.Context, c *ledger.Copy) ([]graphiti.Row, error) {
	list, err := b.p.read(ctx, c.Group, c.Turn)
	if err != nil || len(list) == 0 || b.facts == nil {
		return list, err
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	facts, err := b.facts.FactsIn(ctx, c.Group, names)
	if err != nil || len(facts) == 0 {
		return list, err
	}
	list[0].Text = strings.Join(facts, "\n")
	return list[:1], nil
}

// Has reports whether the store has one of the messages with those names.
func (b *outbox) Has(ctx context.Context, group string, names []string) (bool, error) {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	if len(names) == 0 {
		return false, nil
	}
	for _, err := range b.Rows(ctx, group, graphiti.Filter{Names: names}) {
		return err == nil, err
	}
	return false, nil
}
