package capture

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// ownFile is the record of turns in the memory's file: one transaction decides whether a turn
// is new, writes it to the memory and records it.
type ownFile struct {
	*settings
	*ledger.Ledger
	Events
	log      *slog.Logger
	promoted promoted
	usage    usage
	disk     func(context.Context) (int64, error)
	pruning  sync.WaitGroup
	expired  time.Time // last deletion of old messages
	out      *outbox   // copies turns to Graphiti; nil without Graphiti
}

// openOwnFile opens the memory's ledger and prunes it each minute until stop is closed.
func openOwnFile(set *settings, o *Options, stop chan struct{}) (*ownFile, error) {
	k := &ownFile{settings: set, Events: o.Events, log: o.Log, disk: o.Disk}
	k.Ledger = o.Ledger(func(t *ledger.Turn, scope graphiti.Scope) []graphiti.Row {
		return messagesOf(t, scope, k.opts().MaxChars, time.Now())
	})
	groups, err := k.Ledger.Promoted(context.Background())
	if err != nil {
		return nil, err
	}
	k.promoted.groups = groups
	k.pruning.Go(func() {
		k.measure(time.Now())
		everyMinute(stop, func(now time.Time) {
			k.prune(now)
			k.expire(now)
			k.measure(now)
		})
	})
	return k, nil
}

// store stores each turn for those of its groups that lack it. The turns are on disk when it
// returns.
func (k *ownFile) store(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error) {
	began := time.Now()
	if k.out != nil {
		k.out.mark(ctx, turns)
		defer k.out.loop.Wake()
	}
	all, err := k.add(ctx, turns, k.Add)
	if err != nil || k.out != nil {
		return all, err
	}
	for i := range turns {
		for _, g := range all[i].Groups {
			if t := turns[i].Trace; t != "" {
				k.OnDelivered(deliver.Delivery{Trace: t, Group: g, Began: began, Verified: true})
			}
		}
	}
	return all, nil
}

// add stores turns by a method of the ledger.
func (k *ownFile) add(ctx context.Context, turns []ledger.Turn, store func(context.Context, []ledger.Turn, time.Time) ([]ledger.Added, error)) ([]ledger.Added, error) {
	all, err := store(ctx, turns, time.Now())
	if err != nil {
		return nil, err
	}
	k.promoted.note(turns, all)
	k.usage.added(turns, all)
	return all, nil
}

// Promoted reports whether a group has promoted texts.
func (k *ownFile) Promoted(group string) bool { return k.promoted.Promoted(group) }

func (k *ownFile) status(s *QueueStatus) {
	if k.out != nil {
		k.out.status(s)
		return
	}
	if t, err := k.Totals(); err == nil {
		s.Delivered, s.Verified = t.Delivered, t.Verified
	}
	s.Delivers, s.Breaker = true, "closed"
}

func (k *ownFile) prune(now time.Time) {
	if groups, err := k.Ledger.Promoted(context.Background()); err == nil { // other replicas promote texts, too
		k.promoted.add(groups)
	}
	if err := k.Prune(now, ledger.SeenMax); err != nil {
		k.log.Warn("prune ledger failed", "error", err)
	}
}

// expireEvery is the interval of the deletion of old messages.
const expireEvery = time.Hour

func (k *ownFile) expire(now time.Time) {
	retain := k.opts().Retain
	if retain.Off() || now.Sub(k.expired) < expireEvery {
		return
	}
	ctx := context.Background()
	gone, err := k.Expire(ctx, &retain, now, false)
	var left []ledger.Expired
	if err == nil && len(gone) > 0 { // verify the deletion
		left, err = k.Expire(ctx, &retain, now, true)
	}
	left = slices.DeleteFunc(left, func(e ledger.Expired) bool { return e.Held })
	if err != nil || len(left) > 0 {
		k.log.Warn("delete old messages failed, retrying", "error", err, "groups_left", len(left))
	} else {
		k.expired = now
	}
	messages, facts, work := 0, 0, 0
	for _, e := range gone {
		messages, facts, work = messages+e.Messages, facts+e.Facts, work+e.Work
	}
	if len(gone) > 0 {
		k.log.Info("old messages deleted", "messages", messages, "facts", facts, "groups", len(gone), "work", work)
	}
}

// Expired counts the messages and facts that a retention would delete now, and those on hold.
func (p *Pipeline) Expired(ctx context.Context, r *ledger.Retention) ([]ledger.Expired, error) {
	return p.Expire(ctx, r, time.Now(), true)
}

// Retention returns the current retention.
func (p *Pipeline) Retention() ledger.Retention { return p.opts().Retain }

// close leaves the file open for the memory.
func (k *ownFile) close(ctx context.Context) error {
	if k.out != nil {
		k.out.close(ctx)
	}
	k.pruning.Wait()
	k.prune(time.Now()) // adds the newest turns to the totals
	return nil
}

// noQueue is the queue of a memory without copies.
type noQueue struct{}

func (noQueue) Turns(context.Context, ledger.ListOptions) ([]ledger.Item, int, error) {
	return []ledger.Item{}, 0, nil
}

func (noQueue) Retry([]int64) (int, error)  { return 0, nil }
func (noQueue) Drop([]int64) (int, error)   { return 0, nil }
func (noQueue) Send(time.Time) (int, error) { return 0, nil }
func (noQueue) Import(ledger.Turn)          {}

func (noQueue) Withdrawn(context.Context, string, bool) (int, error) { return 0, nil }

// upkeepEvery is the interval of everyMinute.
const upkeepEvery = time.Minute

// everyMinute calls f each minute until stop is closed.
func everyMinute(stop <-chan struct{}, f func(now time.Time)) {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			f(now)
		}
	}
}
