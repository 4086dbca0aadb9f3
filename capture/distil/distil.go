package distil

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// Grown is the number of characters by which a conversation grows until it is distilled
	// though it is not quiet.
	Grown = 4000

	// pause is the time between two looks at the store, while messages come in.
	pause = time.Second

	charsPerToken = 3    // in an estimate; too few rather than too many
	answerTokens  = 1000 // estimate for an answer
	longestDelay  = 12 * time.Hour
)

// Batches is the store of messages in batches, and of their facts.
type Batches interface {
	// Undistilled returns the next batch of a conversation that has been quiet, or has grown by
	// chars. Without one, it returns nil and the time at which there may be one, or zero.
	Undistilled(ctx context.Context, quiet time.Duration, chars int) (b *graphiti.Batch, next time.Time, err error)

	// KeepFacts stores the facts of a batch and marks the batch as distilled, together.
	KeepFacts(ctx context.Context, b *graphiti.Batch, facts []graphiti.Distilled) (kept int, err error)

	// Postpone repeats a batch at a time. failed counts an attempt.
	Postpone(ctx context.Context, b *graphiti.Batch, until time.Time, failed bool) error
}

// Costs counts calls by person and UTC day.
type Costs interface {
	Distilled(owner string, s graphiti.Spent)

	// DistilledToday returns the counts of a person, of a tenant or, if owner is empty, of all.
	DistilledToday(ctx context.Context, owner string) (graphiti.Spent, error)
}

// Pace bounds the work. It can change at run time.
type Pace struct {
	After        time.Duration // quiet time until a conversation is distilled
	DailyTokens  int
	TenantTokens int // likewise for one tenant; 0 means no limit
	PersonTokens int // likewise for one person
	Paused       bool
}

// Report is the state of a Distiller.
type Report struct {
	Endpoint    string         `json:"endpoint"`
	Paused      bool           `json:"paused,omitempty"`
	DailyTokens int            `json:"daily_tokens"`
	Today       graphiti.Spent `json:"today"`
	Problem     string         `json:"problem,omitempty"` // error of the latest attempt
}

// Distiller distils facts in the background. It is safe for concurrent use.
type Distiller struct {
	store Batches
	costs Costs
	model Model
	log   *slog.Logger
	wake  chan struct{}
	stop  context.CancelFunc
	done  chan struct{}

	mu       sync.Mutex // protects the fields below
	settings Pace
	status   Report
	total    graphiti.Spent
}

// Start starts a Distiller. endpoint is the model's address, for the status.
func Start(store Batches, costs Costs, model Model, endpoint string, s Pace, log *slog.Logger) *Distiller {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Distiller{store: store, costs: costs, model: model, log: log, wake: make(chan struct{}, 1), stop: cancel, done: make(chan struct{}), settings: s}
	d.status.Endpoint = endpoint
	// Ends with Close.
	go d.run(ctx)
	return d
}

// Wake reports that there may be messages to distil. It does not block.
func (d *Distiller) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Set changes the settings.
func (d *Distiller) Set(s Pace) {
	d.mu.Lock()
	d.settings = s
	d.mu.Unlock()
	d.Wake()
}

// Total returns the counts since the start.
func (d *Distiller) Total() graphiti.Spent {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}

// Status returns the current state.
func (d *Distiller) Status(ctx context.Context) Report {
	today, err := d.costs.DistilledToday(ctx, "")
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	s.Paused, s.DailyTokens, s.Today = d.settings.Paused, d.settings.DailyTokens, today
	if err != nil {
		s.Problem = err.Error()
	}
	return s
}

// Close ends a running call to the model and waits for the end of the goroutine.
func (d *Distiller) Close() {
	d.stop()
	<-d.done
}

func (d *Distiller) run(ctx context.Context) {
	defer close(d.done)
	for ctx.Err() == nil {
		next := d.step(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		select {
		case <-ctx.Done():
		case <-d.wake:
		case <-time.After(time.Until(next)):
		}
	}
}

// step distils one batch if one is due, and returns the time of the next step.
func (d *Distiller) step(ctx context.Context) (next time.Time) {
	d.mu.Lock()
	s := d.settings
	d.mu.Unlock()
	now := time.Now()
	idle := now.Add(longestDelay) // or until Wake
	if s.Paused {
		return idle
	}
	b, next, err := d.store.Undistilled(ctx, s.After, Grown)
	if err != nil {
		d.report(ctx, err)
		return now.Add(time.Minute)
	}
	if b == nil {
		if next.IsZero() {
			return idle
		}
		return next
	}
	asked := question(b)
	cost := (len(instructions)+len(asked))/charsPerToken + answerTokens
	tomorrow := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	all, err := d.costs.DistilledToday(ctx, "")
	tenant, failed := d.costs.DistilledToday(ctx, graphiti.TenantOf(b.Owner))
	person, unknown := d.costs.DistilledToday(ctx, b.Owner)
	switch err = cmp.Or(err, failed, unknown); {
	case err != nil:
		d.report(ctx, err)
		return now.Add(time.Minute)
	case all.Tokens+cost > s.DailyTokens:
		d.report(ctx, errBudget)
		return tomorrow
	case s.TenantTokens > 0 && tenant.Tokens+cost > s.TenantTokens:
		err = errTenant
	case s.PersonTokens > 0 && person.Tokens+cost > s.PersonTokens:
		err = errPerson
	}
	if err != nil {
		d.report(ctx, cmp.Or(d.store.Postpone(ctx, b, tomorrow, false), err))
		return now
	}
	d.report(ctx, d.distil(ctx, b, asked, s.After))
	return now
}

var errBudget = errors.New("distil.daily_tokens is reached; the next facts are distilled tomorrow (UTC)")

var errTenant = errors.New("quota.tenant is reached: the next facts of a credential are distilled tomorrow (UTC)")

var errPerson = errors.New("quota.person is reached: a person's next facts are distilled tomorrow (UTC)")

// distil asks the model about a batch, and stores its facts or the failure.
func (d *Distiller) distil(ctx context.Context, b *graphiti.Batch, asked string, after time.Duration) (err error) {
	answer, tokens, facts, refused := "", 0, []graphiti.Distilled(nil), 0
	func() {
		defer func() {
			if r := recover(); r != nil { // an answer must not end the process
				err = errors.New("panic while facts were read")
			}
		}()
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if answer, tokens, err = d.model.Ask(limited, b, instructions, asked); err == nil {
			facts, refused, err = factsIn(answer, b)
		}
	}()
	if ctx.Err() != nil { // the process ends; the batch is sent again after the next start
		return nil
	}
	if errors.Is(err, errNoProvider) { // no call was made
		return errors.Join(err, d.store.Postpone(ctx, b, time.Now().Add(after), false))
	}
	// A server may report too few tokens, or none.
	spent := graphiti.Spent{Calls: 1, Tokens: max(tokens, (len(instructions)+len(asked)+len(answer))/(charsPerToken+1)), Refused: refused}
	if err == nil {
		spent.Facts, err = d.store.KeepFacts(ctx, b, facts)
		d.add(b.Owner, spent)
		return err
	}
	spent.Failed = 1
	d.add(b.Owner, spent)
	delay := after
	for range b.Tries {
		delay = min(4*delay, longestDelay)
	}
	return errors.Join(err, d.store.Postpone(ctx, b, time.Now().Add(delay), true))
}

func (d *Distiller) add(owner string, s graphiti.Spent) {
	d.costs.Distilled(owner, s)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total.Add(s)
}

// report notes the result of an attempt, and logs a new problem.
func (d *Distiller) report(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	d.mu.Lock()
	known := d.status.Problem == problem
	d.status.Problem = problem
	d.mu.Unlock()
	if err != nil && !known {
		d.log.Warn("distil facts failed, retrying later", "error", err)
	}
}
