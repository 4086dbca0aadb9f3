package proxy

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// Planner decides what is inserted into a request. It must not block longer
// than ctx, nor keep the conversation.
type Planner interface {
	Plan(ctx context.Context, c *dialect.Conversation, chain []dialect.Fingerprint, who graphiti.Who, first bool, mode inject.Mode) inject.Plan

	// Withdraw takes the block out of a Withdrawable plan, and reports whether the turn
	// goes on without it.
	Withdraw(p *inject.Plan) bool
	// Writes returns the groups that a turn is to be kept in.
	Writes(who graphiti.Who) []graphiti.Target

	// ToBackfill returns those of a plan's unseen turns that are to be kept. It may wait.
	ToBackfill(ctx context.Context, turns []inject.Unseen) ([]inject.Unseen, error)

	// Remember takes a finished turn of a generation, and what
	// Conversation.Work says was done in it, into its session's short-term
	// memory. It may wait.
	Remember(who graphiti.Who, generation int64, work []byte, said string)

	// Prefetch prepares the next recall of a session. It does not wait.
	Prefetch(who graphiti.Who, generation int64, said, answered string)
}

// Sessions knows which session a conversation belongs to, by fingerprints of
// its beginning.
type Sessions interface {
	// Pending finds the first of some conversations that has no answer yet.
	Pending(ctx context.Context, fingerprints ...[16]byte) (session string, ok bool)
	SetPending(ctx context.Context, fingerprint [16]byte, session string)
	EndPending(fingerprint [16]byte)

	// Find returns the session of the first fingerprint that is known.
	Find(ctx context.Context, fingerprints [][16]byte) (session string, ok bool, err error)
	Put(ctx context.Context, session string, fingerprints ...[16]byte) error
	PutAsync(fingerprint [16]byte, session string) // does not wait
}

// Turns records turns.
type Turns interface {
	Add(ctx context.Context, t ledger.Turn) error

	// AddAsync keeps turns in the background, even if the request fails. It does not
	// block, and reports whether there is room for them.
	AddAsync(turns []ledger.Turn) bool

	Begin(turn string)                               // notes that this process answers the turn
	CutOff(ctx context.Context, t ledger.Turn) error // notes that an answer came to no clean end
	Kept(turn string, in []graphiti.Target) bool     // reports whether a turn was recorded for all these groups a short while ago
	Known(turn [16]byte) bool                        // reports whether this process answers or has recorded a turn
	Backfill(h capture.History)                      // records earlier turns of a conversation; does not block
}

// Hearer does what people ask of the memory in a message.
type Hearer interface {
	// Hear does what a message asks, such as "remember that …", and counts it. It may
	// wait for the state until ctx ends.
	Hear(ctx context.Context, s capture.Saying) inject.Heard
}

// Generations counts forgets. A request reads the count once, and what is written for
// the request carries it.
type Generations interface{ Now() int64 }

// Figures counts what memory does. It must not block.
type Figures interface {
	// Asked counts a request that may have had memory, by what was planned for it. The
	// plan's slices must not be kept.
	Asked(who graphiti.Who, p inject.Plan)

	// Lost counts an answer that was not stored, by the reason.
	Lost(who graphiti.Who, reason string)

	// Used counts the tokens of a request, as its provider said them.
	Used(who graphiti.Who, input, cached int)
}

// Memory says how the proxy remembers, and by which services.
type Memory struct {
	Settings
	Services
	Off Off // says why there is no Planner
}

// Off says why memory is off.
type Off struct {
	Reason inject.Reason // may be empty
	Missed func()        // is called for each turn of a person that is forwarded without memory, and must not block; may be nil
}

// Settings say how the proxy remembers.
type Settings struct {
	Identity identity.Settings
	Rules    Rules
	Recall   bool
	Ingest   bool
	Note     Note
	Timeout  time.Duration // the most that a request waits for memory

	// DropThinking lets Anthropic drop thoughts that are bound to a block that
	// was forgotten.
	DropThinking bool
}

// Note says what else is noted with a turn.
type Note struct{ Git, Tools bool }

// Services are what the proxy remembers with. Without a Planner it only forwards. Any
// other service that is nil does nothing.
type Services struct {
	Planner     Planner
	Sessions    Sessions
	Turns       Turns
	Hearer      Hearer
	Tenants     Tenants
	Generations Generations
	Figures     Figures
	Responses   *response.Workers
	Pending     *PendingTurns // the turns whose end is awaited
}

// orNothing returns the memory with services that do nothing in place of those that are
// nil.
func (m Memory) orNothing() *Memory {
	if m.Sessions == nil {
		m.Sessions = nothing{}
	}
	if m.Turns == nil {
		m.Turns = nothing{}
	}
	if m.Hearer == nil {
		m.Hearer = nothing{}
	}
	if m.Tenants == nil {
		m.Tenants = nothing{}
	}
	if m.Generations == nil {
		m.Generations = nothing{}
	}
	if m.Figures == nil {
		m.Figures = nothing{}
	}
	return &m
}

// nothing stands for the services that there are not.
type nothing struct{}

func (nothing) Pending(context.Context, ...[16]byte) (string, bool)    { return "", false }
func (nothing) SetPending(context.Context, [16]byte, string)           {}
func (nothing) EndPending([16]byte)                                    {}
func (nothing) Find(context.Context, [][16]byte) (string, bool, error) { return "", false, nil }
func (nothing) Put(context.Context, string, ...[16]byte) error         { return nil }
func (nothing) PutAsync([16]byte, string)                              {}
func (nothing) Add(context.Context, ledger.Turn) error                 { return nil }
func (nothing) AddAsync([]ledger.Turn) bool                            { return false }
func (nothing) Begin(string)                                           {}
func (nothing) CutOff(context.Context, ledger.Turn) error              { return nil }
func (nothing) Kept(string, []graphiti.Target) bool                    { return false }
func (nothing) Known([16]byte) bool                                    { return false }
func (nothing) Backfill(capture.History)                               {}
func (nothing) Hear(context.Context, capture.Saying) inject.Heard      { return inject.Heard{} }
func (nothing) Accepted(context.Context, string) bool                  { return true }
func (nothing) Accept(string)                                          {}
func (nothing) Now() int64                                             { return 0 }
func (nothing) Asked(graphiti.Who, inject.Plan)                        {}
func (nothing) Used(graphiti.Who, int, int)                            {}
func (nothing) Lost(graphiti.Who, string)                              {}
