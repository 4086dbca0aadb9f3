package proxy

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// Planner plans the blocks to insert into a request. It must not block longer than ctx,
// nor retain the conversation.
type Planner interface {
	Plan(ctx context.Context, c *dialect.Conversation, chain []dialect.Fingerprint, who graphiti.Who, first bool, mode inject.Mode) inject.Plan

	// Withdraw removes the new block of a plan from later requests.
	Withdraw(u inject.Unanswered)
	// Writes returns the groups to store a turn in.
	Writes(who graphiti.Who) []graphiti.Target

	// Read returns the work in a tool round, and Worked adds it to the notes of the session. Worked
	// may wait.
	Read(r *inject.Round) inject.Done
	Worked(who graphiti.Who, generation int64, d *inject.Done)

	// Remember adds a finished request of a generation to its session's short-term memory. It
	// may wait.
	Remember(who graphiti.Who, generation int64, e inject.Ended)
}

// Sessions finds the session of a conversation by fingerprints of its beginning.
type Sessions interface {
	// Pending returns the session of the first of these conversations that has no answer
	// yet.
	Pending(ctx context.Context, fingerprints ...[16]byte) (session string, ok bool)
	SetPending(ctx context.Context, fingerprint [16]byte, session string)
	EndPending(fingerprint [16]byte)

	// Find returns the session of the first known fingerprint.
	Find(ctx context.Context, fingerprints [][16]byte) (session string, ok bool, err error)
	Put(ctx context.Context, session string, fingerprints ...[16]byte) error
	PutAsync(fingerprint [16]byte, session string) // does not wait
}

// Turns records turns.
type Turns interface {
	Add(ctx context.Context, t ledger.Turn) error

	Begin(turn string)                               // notes that this process answers the turn
	CutOff(ctx context.Context, t ledger.Turn) error // notes that a turn must not be stored from a history or a transcript
	Kept(turn string, in []graphiti.Target) bool     // reports whether a turn was recently recorded for all these groups
	Known(turn [16]byte) bool                        // reports whether this process answers or has recorded a turn
	Backfill(h capture.History)                      // records earlier turns of a conversation; does not block
	Full(owner string) string                        // returns the quota that an owner has reached, or ""
}

// Doubts holds turns of requests that may be about another turn.
type Doubts interface {
	// Hold records a turn when its session continues with it, or after a while. The turn is
	// held for the reason, or stored at once.
	Hold(ctx context.Context, t ledger.Turn, why *capture.Doubt) (graphiti.Fate, error)

	// Holds returns the number of held turns of a session.
	Holds(session string) int

	// Twin reports the message of a turn that has begun or is stored. It does not wait.
	Twin(t *capture.Twin, stored bool)

	// Release ends the holds of a caller's earlier messages, unless they may be about the
	// message. It waits until they are recorded, or ctx ends.
	Release(ctx context.Context, t *capture.Twin)

	// GoesOn reports the history of another turn of a session. It stores the held turns in
	// the history and, if drops is set, drops the others. It does not wait.
	GoesOn(session string, history []dialect.Fingerprint, drops bool)
}

// Standing applies a person's message to the memory.
type Standing interface {
	// Apply carries out a message such as "remember that …", and counts the effects. It may wait
	// for the state until ctx ends.
	Apply(ctx context.Context, m standing.Message) inject.Heard

	// EndTurn ends a turn in its groups, after its message was edited: it stays there, but is not
	// recalled. generation is the one of the turn that replaced it.
	EndTurn(ctx context.Context, who graphiti.Who, turn string, in []graphiti.Target, generation int64) error
}

// Generations counts forgets. A request reads the count once, and everything that is
// written for the request includes it.
type Generations interface{ Now() int64 }

// Statistics counts requests, lost answers and tokens for the memory's statistics. It must
// not block.
type Statistics interface {
	// Asked counts a request by its plan. It must not retain the plan's slices.
	Asked(who graphiti.Who, p inject.Plan)

	// Lost counts an answer that was not stored, by the reason.
	Lost(who graphiti.Who, reason string)

	// Used counts the tokens of a request, as its provider reported them.
	Used(who graphiti.Who, model string, u *graphiti.Usage)
}

// Memory contains the settings and services of the memory.
type Memory struct {
	MemorySettings
	Services
	Off Off // if there is no Planner
}

// Off describes a memory that is off.
type Off struct {
	Reason inject.Reason // may be empty
	Missed func()        // is called for each turn of a person that is forwarded without memory; must not block; may be nil
}

// MemorySettings are the settings of the memory.
type MemorySettings struct {
	Identity identity.Settings
	Rules    Rules
	Recall   bool
	Ingest   bool
	Note     Note
	Timeout  time.Duration // the longest time that a request waits for memory

	// DropThinking lets Anthropic drop thinking blocks that depend on a forgotten memory
	// block.
	DropThinking bool
}

// Note selects additional details to record with a turn.
type Note struct{ Git, Work bool }

// Services are the services of the memory. Without a Planner, the proxy only forwards, and
// uses none of the others.
type Services struct {
	Planner     Planner
	Sessions    Sessions
	Turns       Turns
	Doubts      Doubts
	Standing    Standing
	Tenants     Tenants
	Generations Generations
	Figures     Statistics
	Providers   Providers // nil if no model of the caller's provider distils facts
	Responses   *response.Readers
	Pending     *PendingTurns // the turns that have not ended
}
