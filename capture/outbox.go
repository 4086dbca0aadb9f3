package capture

import (
	"context"
	"errors"
	"slices"
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

// alone is the lease of a process that shares its ledger with no other.
type alone struct{}

func (alone) Take(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, nil }

// maxTraces bounds the traces of turns that are not delivered yet.
const maxTraces = 1024

// outbox copies the turns of a memory to Graphiti.
type outbox struct {
	*ownFile
	copies queue
	lease  Lease
	says   func(ctx context.Context, text string) bool // Destination.States
	loop   *deliver.Loop
	leads  atomic.Bool                // this process has the lease
	traces *lru.Cache[string, string] // by turn
	pulls  *puller
	worker sync.WaitGroup
	base   context.Context // of all background work
	abort  context.CancelFunc
}

func openOutbox(k *ownFile, o *Options, stop chan struct{}, redact func(string) string, t deliver.Timing) (*outbox, error) {
	totals, err := k.Totals()
	if err != nil {
		return nil, err
	}
	if o.Facts != nil {
		o.Facts.Copied()
	}
	k.Copied(func(t *ledger.Turn) bool {
		return worthCopy(t) && (o.Facts == nil || !slices.ContainsFunc(messagesOf(t, graphiti.ScopeUser, k.opts().MaxChars, time.Now()), func(m graphiti.Row) bool { return o.Facts.Distils(&m) }))
	})
	b := &outbox{ownFile: k, copies: queue{k.Ledger, k.Ledger, o.Facts, k.settings}, lease: o.Lease, says: o.States}
	if b.lease == nil {
		b.lease = alone{}
	}
	if b.traces, err = lru.New[string, string](maxTraces); err != nil {
		return nil, err
	}
	b.base, b.abort = context.WithCancel(context.Background())
	b.pulls = newPuller(b.base, k, o, redact, b.leads.Load)
	b.loop = deliver.New(deliver.Options{
		Ledger: b.copies, Memory: o.Graph, Apart: o.Apart, Verify: o.Verify,
		Timing: t, Timeout: o.Timeout,
		OnDelivered: b.delivered, Log: o.Log,
		OnSeen: b.seen,
	}, totals.Verified > 0)
	b.worker.Go(func() { b.lead(stop) })
	return b, nil
}

func (o *Bounds) timing() deliver.Timing { return deliver.DefaultTiming(o.StallAfter) }

// lead delivers whenever this process has the lease, until stop is closed.
func (b *outbox) lead(stop <-chan struct{}) {
	waiting, cancel := context.WithCancel(b.base)
	defer cancel()
	go func() { // ends with lead
		select {
		case <-stop:
			cancel()
		case <-waiting.Done():
		}
	}()
	for waiting.Err() == nil {
		led, release, err := b.lease.Take(waiting)
		if err != nil {
			b.log.Warn("take the lease of delivery failed, retrying", "error", err)
			select {
			case <-waiting.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		b.leads.Store(true)
		b.pulls.wake()
		b.loop.Run(led, stop)
		b.leads.Store(false)
		release()
	}
}

// delivered reports the delivery of a traced turn.
func (b *outbox) delivered(d deliver.Delivery) {
	if trace, ok := b.traces.Get(d.Turn); ok {
		d.Trace = trace
		b.OnDelivered(d)
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

// lookEvery is the interval at which a forget checks the deletion in Graphiti.
const lookEvery = 20 * time.Millisecond

// Withdrawn implements Queue.
func (b *outbox) Withdrawn(ctx context.Context, group string, patient bool) (left int, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		rows, err := b.Ledger.Withdrawn(context.WithoutCancel(ctx), group)
		if err != nil || len(rows) == 0 {
			return 0, err
		}
		failed := b.loop.Erased(group, rows[len(rows)-1].ID)
		switch {
		case errors.Is(failed, deliver.ErrQuiet): // only a later turn proves a loss
			return len(rows), nil
		case failed != nil && !patient:
			return len(rows), failed
		}
		select {
		case <-ctx.Done():
			return len(rows), failed
		case <-tick.C:
		}
	}
}

// Turns implements Queue.
func (b *outbox) Turns(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error) {
	return b.copies.Turns(ctx, o)
}

// Import implements Queue.
func (b *outbox) Import(owner ledger.Turn) { b.pulls.Import(owner) }

// Retry implements Queue.
func (b *outbox) Retry(numbers []int64) (int, error) {
	n, err := b.Ledger.Retry(numbers)
	b.loop.Wake()
	b.loop.Test()
	return n, err
}

// Send implements Queue.
func (b *outbox) Send(since time.Time) (int, error) {
	n, err := b.Ledger.Send(since)
	b.loop.Wake()
	return n, err
}

func (b *outbox) apply(paused bool) {
	o := b.opts()
	b.loop.Set(o.timing(), o.Timeout, paused)
	b.pulls.pause(paused)
}

// close stops delivery. The channel that ends lead must be closed.
func (b *outbox) close(ctx context.Context) {
	defer context.AfterFunc(ctx, b.abort)()
	b.worker.Wait()
	b.abort()
	b.pulls.done.Wait()
	if n, err := b.Counts(context.Background()); err == nil && n.Pending > 0 {
		b.log.Info("undelivered turns stay in the queue, and are delivered after the next start", "turns", n.Pending)
	}
}
