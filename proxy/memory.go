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
	Put(ctx context.Context, fingerprint [16]byte, session string) error
	PutAsync(fingerprint [16]byte, session string) // does not wait
}

// Memory is what the proxy needs in order to remember. Without a Planner it
// forwards, and says Off for the reason.
type Memory struct {
	Planner   Planner
	Sessions  Sessions
	Responses *response.Workers
	Keep      func(context.Context, ledger.Turn) error
	CutOff    func(context.Context, ledger.Turn) error     // notes that an answer came to no clean end
	Kept      func(turn string, in []graphiti.Target) bool // whether a turn was recorded not long ago in all of those
	Begin     func(turn string)                            // says that the turn is being answered here
	Known     func(turn [16]byte) bool                     // whether it is, was, or has been recorded
	Pending   *PendingTurns                                // the turns whose end is awaited
	Identity  identity.Settings
	Rules     Rules
	Recall    bool
	Ingest    bool
	Note      Note

	Backfill func(capture.History) // records what was said before; must not block

	// Generation is how often something was forgotten. A request reads it once,
	// and whatever is written for it carries it. nil: nothing ever is.
	Generation func() int64

	// Beside is the caller's own memory, in a project whose turns are not kept there.
	// nil: there is none.
	Beside func(graphiti.Who) (t graphiti.Target, ok bool)

	// Stated finds, in what a person surely wrote in a turn, what is to be kept beside
	// it, promoted texts with their kind, and counts those that are refused, and those
	// for a scope that there is not. nil: that is not wanted.
	Stated func(who graphiti.Who, generation int64, text string) (list []ledger.Turn, refused, unscoped int)

	// Later keeps turns whatever becomes of the request, and must not block. It
	// reports whether there is room for them.
	Later func([]ledger.Turn) bool

	// Tenants says whose credentials were accepted; nil: nobody asks.
	Tenants Tenants

	// DropThinking lets Anthropic drop thoughts that are bound to a block that
	// was forgotten.
	DropThinking bool

	Off inject.Reason // why there is no Planner; may be empty

	// Missed is called for each turn of a person that goes by without a Planner.
	// It must not block. May be nil.
	Missed func()

	// Timeout is the most that a request waits for memory.
	Timeout time.Duration
}

// Note says what else is noted with a turn.
type Note struct{ Git, Tools bool }
