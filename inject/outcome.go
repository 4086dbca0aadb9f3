package inject

import (
	"strconv"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Status says in one word what memory did for a request.
type Status string

// The statuses of the X-Graphiti-Memory response header.
const (
	StatusRecalled Status = "recalled"
	StatusEmpty    Status = "empty"
	StatusTimeout  Status = "timeout"
	StatusError    Status = "error"
	StatusOff      Status = "off"
	StatusSkipped  Status = "skipped"
)

// Reason says why a request was skipped, memory was off, or no block was inserted. The
// list is closed. The empty reason means that there is nothing to say.
type Reason string

// The reasons of the X-Graphiti-Memory response header.
const (
	ReasonNone          Reason = ""
	ReasonTitle         Reason = "title"
	ReasonSummary       Reason = "summary"
	ReasonProbe         Reason = "probe"
	ReasonSubagent      Reason = "subagent"
	ReasonMachine       Reason = "machine"
	ReasonEncoding      Reason = "encoding"
	ReasonTooLarge      Reason = "too_large"
	ReasonNoUserMessage Reason = "no_user_message"
	ReasonNotPersisted  Reason = "not_persisted"
	ReasonConsent       Reason = "consent"
	ReasonOptOut        Reason = "opt_out"
	ReasonUntrusted     Reason = "untrusted"
	ReasonNobody        Reason = "nobody"    // no person and no actor is known
	ReasonPlace         Reason = "place"     // it is not known where the request takes place
	ReasonForgotten     Reason = "forgotten" // a block of the conversation was emptied
	ReasonAPI           Reason = "api"       // a model API that has no memory
	ReasonRefused       Reason = "refused"   // the provider refused the request with a block, and got it without
	ReasonState         Reason = "state"     // a file of data_dir cannot be used
	ReasonBusy          Reason = "busy"      // the budget for inspected bodies is used up
	ReasonNothing       Reason = "nothing"   // nothing was found
	ReasonWeak          Reason = "weak"      // nothing that was found is worth showing
	ReasonVisible       Reason = "visible"   // what was found stands in the conversation
	ReasonRoutine       Reason = "routine"   // nothing is asked that could be looked up
)

// kindReasons are what the response header says of requests that are no turn.
var kindReasons = map[dialect.Kind]Reason{
	dialect.KindTitle: ReasonTitle, dialect.KindSummary: ReasonSummary, dialect.KindProbe: ReasonProbe, dialect.KindMachine: ReasonMachine,
}

// Source says where the facts of a block came from.
type Source string

// The sources of the X-Graphiti-Memory response header.
const (
	SourceLive   Source = "live"   // searched for this request
	SourceCache  Source = "cache"  // a fresh cache entry
	SourceStale  Source = "stale"  // a stale cache entry, refreshed behind
	SourceLocal  Source = "local"  // said recently; the memory knew nothing, or did not answer in time
	SourceSticky Source = "sticky" // decided by an earlier request of the turn
)

// The closed lists, for metrics and tests.
var (
	Statuses = []Status{StatusRecalled, StatusEmpty, StatusTimeout, StatusError, StatusOff, StatusSkipped}
	Reasons  = []Reason{
		ReasonNone, ReasonTitle, ReasonSummary, ReasonProbe, ReasonSubagent, ReasonMachine, ReasonEncoding,
		ReasonTooLarge, ReasonNoUserMessage, ReasonNotPersisted, ReasonConsent, ReasonOptOut, ReasonUntrusted, ReasonNobody, ReasonPlace, ReasonForgotten, ReasonAPI, ReasonRefused, ReasonState, ReasonBusy, ReasonNothing, ReasonWeak, ReasonVisible, ReasonRoutine,
	}
	Sources = []Source{"", SourceLive, SourceCache, SourceStale, SourceLocal, SourceSticky}
)

// Heard counts what a message asked of the memory, such as "remember that …".
type Heard struct {
	Promoted int // texts that take effect in the place where they were said
	Pending  int // texts that wait for the person's confirmation
	Ended    int // statements that the message ended
	Refused  int // texts that look like they hold a credential, or are too long
	Unscoped int // texts for a scope that the request does not have

	// Forgets says that the message only asks to forget something, so that its turn is
	// not stored.
	Forgets bool
}

// Append writes the counts as the X-Graphiti-Memory response header has them.
func (h *Heard) Append(b []byte) []byte {
	for _, c := range []struct {
		name  string
		count int
	}{{"promoted", h.Promoted}, {"pending", h.Pending}, {"ended", h.Ended}, {"refused", h.Refused}, {"unscoped", h.Unscoped}} {
		if c.count > 0 {
			b = append(append(append(b, "; "...), c.name...), '=')
			b = strconv.AppendInt(b, int64(c.count), 10)
		}
	}
	return b
}

// Outcome is what happened to one request. It feeds the response header, the
// log line, the span and the metrics alike.
type Outcome struct {
	Heard

	Status Status
	Reason Reason
	Facts  int           // facts in the newest turn's block
	Chars  int           // characters of the newest turn's block
	Took   time.Duration // by all decisions for the request; the caller of Plan measures it
	Source Source
}

// Append writes the outcome as the X-Graphiti-Memory response header has it.
func (o *Outcome) Append(b []byte) []byte {
	b = append(b, o.Status...)
	b = append(b, "; facts="...)
	b = strconv.AppendInt(b, int64(o.Facts), 10)
	b = append(b, "; chars="...)
	b = strconv.AppendInt(b, int64(o.Chars), 10)
	b = append(b, "; ms="...)
	b = strconv.AppendInt(b, int64(o.Took/time.Millisecond), 10)
	if o.Source != "" {
		b = append(append(b, "; source="...), o.Source...)
	}
	if o.Reason != ReasonNone {
		b = append(append(b, "; reason="...), o.Reason...)
	}
	return o.Heard.Append(b)
}
