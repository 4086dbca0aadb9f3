// Package proof measures the effect of showing memory. An experiment withholds memory from a
// random share of conversations and compares them with the others, once, at a number of
// conversations that is fixed at its start.
package proof

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

// Terms identify an experiment.
type Terms struct {
	Share  float64 // share of conversations without memory, 0 to 1; 0 disables the experiment
	Number int     // number of conversations to compare
	Secret []byte  // key of the hash that decides the arm
}

// Store stores trials, the records of conversations. A forget of one of their scopes deletes them.
type Store interface {
	Load(ctx context.Context, key string) ([]byte, error) // nil without a record
	Save(ctx context.Context, key string, body []byte, generation int64, scopes ...string) error
	Each(ctx context.Context, f func(key string, body []byte) error, scopes ...string) error
}

// Proof runs an experiment. A nil Proof runs none. It is safe for concurrent use.
type Proof struct {
	terms  Terms
	scope  string // of its trials
	store  Store
	log    *slog.Logger
	full   atomic.Bool // no further conversation takes part
	events chan Event  // if full, further ones are dropped, in both arms alike
	stop   chan struct{}
	done   chan struct{}
}

// Talk identifies a conversation, with its subagents and over compactions.
type Talk struct {
	Owner, Session string
	Groups         []string // searched for its blocks
	Generation     int64    // of the request
}

// Event is a turn of a conversation, a tool round or a usage of tokens.
type Event struct {
	Talk
	Text   string   // the person's message; "" for a subagent's or a tool round
	Lines  []string // lines of the block that was shown or withheld
	Asked  bool     // the request asks for memory
	Rounds int
	Tokens int64 // input and output, blocks included
}

// Open continues the experiment of the settings, or begins it. It returns nil if there is none.
func Open(s Store, terms Terms, log *slog.Logger) *Proof {
	if terms.Share <= 0 {
		return nil
	}
	p := &Proof{terms: terms, scope: fmt.Sprintf("trials of %v and %d", terms.Share, terms.Number), store: s, log: log, events: make(chan Event, 1024), stop: make(chan struct{}), done: make(chan struct{})}
	// Ends with Close.
	go p.run()
	return p
}

// Close returns after the work for all events.
func (p *Proof) Close() {
	if p != nil {
		close(p.stop)
		<-p.done
	}
}

// Withholds reports whether a new block is withheld from a conversation. before is true if the
// conversation has had a block, and asked if the request asks for memory; both exclude it from
// the comparison. The first call for a conversation stores its arm.
func (p *Proof) Withholds(ctx context.Context, c *Talk, before, asked bool) bool {
	if p == nil || c.Session == "" {
		return false
	}
	t, err := p.load(ctx, c)
	if err == nil && t == nil {
		if p.isFull(ctx) {
			return false
		}
		t = p.begin(c, before, asked)
		err = p.save(ctx, c, t)
	}
	if err != nil {
		p.log.Warn("store the arm of a conversation failed, its block is shown", "error", err)
	}
	return err == nil && t.Withheld && t.Left == "" && !asked
}

// isFull reports whether the experiment has its number of conversations.
func (p *Proof) isFull(ctx context.Context) bool {
	if !p.full.Load() {
		trials, err := p.trials(ctx)
		eligible, _ := split(trials)
		p.full.Store(err == nil && len(eligible) >= p.terms.Number)
	}
	return p.full.Load()
}

// begin returns the trial of a conversation. Its hash decides the arm.
func (p *Proof) begin(c *Talk, before, asked bool) *trial {
	h := hmac.New(sha256.New, p.terms.Secret)
	h.Write(digest(p.scope, c.Owner, c.Session))
	sum := h.Sum(nil)
	t := &trial{Withheld: float64(binary.BigEndian.Uint32(sum)) < p.terms.Share*(1<<32), Half: sum[4]&1 == 1, Began: time.Now().UTC(), Person: digest(c.Owner)[:8]}
	if before {
		t.Left = leftBefore
	} else if asked {
		t.Left = leftAsked
	}
	return t
}

// Add adds an event to the trial of its conversation, if it has one. It does not block.
func (p *Proof) Add(e Event) {
	if p == nil || e.Session == "" {
		return
	}
	select {
	case p.events <- e:
	default:
	}
}

// run applies events until Close.
func (p *Proof) run() {
	defer close(p.done)
	for stop := p.stop; stop != nil || len(p.events) > 0; {
		select {
		case <-stop:
			stop = nil
		case e := <-p.events:
			if err := p.apply(&e); err != nil {
				p.log.Debug("change the trial of a conversation failed", "error", err)
			}
		}
	}
}

func (p *Proof) apply(e *Event) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	t, err := p.load(ctx, &e.Talk)
	if err != nil || t == nil {
		return err
	}
	t.add(e)
	return p.save(ctx, &e.Talk, t)
}

// load returns the trial of a conversation, or nil.
func (p *Proof) load(ctx context.Context, c *Talk) (t *trial, err error) {
	body, err := p.store.Load(ctx, p.key(c))
	if err == nil && body != nil {
		err = json.Unmarshal(body, &t)
	}
	return t, err //nolint:wrapcheck // the caller names the action
}

func (p *Proof) save(ctx context.Context, c *Talk, t *trial) error {
	body, _ := json.Marshal(t)
	return p.store.Save(ctx, p.key(c), body, c.Generation, append(slices.Clone(c.Groups), p.scope)...) //nolint:wrapcheck // the caller names the action
}

// trials returns all trials of the experiment.
func (p *Proof) trials(ctx context.Context) (all []*trial, err error) {
	err = p.store.Each(ctx, func(_ string, body []byte) error {
		var t trial
		all = append(all, &t)
		return json.Unmarshal(body, &t)
	}, p.scope)
	return all, err //nolint:wrapcheck // the caller names the action
}

func (p *Proof) key(c *Talk) string {
	return hex.EncodeToString(digest(p.scope, c.Owner, c.Session))
}

// digest hashes texts.
func digest(parts ...string) []byte {
	h := sha256.New()
	for _, s := range parts {
		fmt.Fprint(h, len(s), ":", s)
	}
	return h.Sum(nil)
}
