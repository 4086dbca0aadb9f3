package inject

import (
	"strconv"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Status is the effect of memory on a request.
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

// Reason explains a skipped request, disabled memory or a missing block. The list is
// closed: see Explanations.
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
	ReasonNobody        Reason = "nobody"
	ReasonPlace         Reason = "place"
	ReasonForgotten     Reason = "forgotten"
	ReasonAPI           Reason = "api"
	ReasonRefused       Reason = "refused"
	ReasonState         Reason = "state"
	ReasonBusy          Reason = "busy"
	ReasonNothing       Reason = "nothing"
	ReasonWeak          Reason = "weak"
	ReasonOutdated      Reason = "outdated"
	ReasonVisible       Reason = "visible"
	ReasonTold          Reason = "told"
	ReasonRoutine       Reason = "routine"
	ReasonWithheld      Reason = "withheld"
)

// ReasonOf returns the reason of a request of a kind other than a turn.
func ReasonOf(k dialect.Kind) Reason { return kindReasons[k] }

var kindReasons = map[dialect.Kind]Reason{
	dialect.KindTitle: ReasonTitle, dialect.KindSummary: ReasonSummary, dialect.KindProbe: ReasonProbe, dialect.KindMachine: ReasonMachine,
}

// Source is the origin of a block's facts.
type Source string

// The sources of the X-Graphiti-Memory response header.
const (
	SourceLive   Source = "live"   // searched for this request
	SourceLocal  Source = "local"  // recent messages, because the backend found nothing or was late
	SourceSticky Source = "sticky" // decided by an earlier request of the turn
)

// The closed lists, for tests.
var (
	Statuses = []Status{StatusRecalled, StatusEmpty, StatusTimeout, StatusError, StatusOff, StatusSkipped}
	Sources  = []Source{"", SourceLive, SourceLocal, SourceSticky}
)

// Heard counts the memory commands in a message, such as "remember that …".
type Heard struct {
	Promoted int // texts in effect
	Pending  int // texts without the person's confirmation
	Ended    int // statements ended by the message
	Refused  int // overlong texts and texts that may contain a credential
	Unscoped int // texts for a scope that the request does not have
	Full     int // texts without room in the pending list

	Undo string // ID of the line that ended statements

	Unmatched int // texts to forget that no statement says

	// Forgets prevents storing the turn, because the message only asks to forget.
	Forgets bool
}

// appendCounts appends the counts in the format of the X-Graphiti-Memory response header.
func (o *Outcome) appendCounts(b []byte) []byte {
	for _, c := range []struct {
		name  string
		count int
	}{{"promoted", o.Promoted}, {"pending", o.Pending}, {"ended", o.Ended}, {"refused", o.Refused}, {"unscoped", o.Unscoped}, {"unmatched", o.Unmatched}, {"full", o.Full}, {"held", o.Held}, {"lost", o.Lost}} {
		if c.count > 0 {
			b = append(append(append(b, "; "...), c.name...), '=')
			b = strconv.AppendInt(b, int64(c.count), 10)
		}
	}
	if o.Quota != "" {
		b = append(append(b, "; quota="...), o.Quota...)
	}
	if o.Earlier != "" {
		b = append(append(append(b, `; earlier="`...), o.Earlier...), '"')
	}
	if o.Undo != "" {
		b = append(append(b, "; undo="...), o.Undo...)
	}
	return b
}

// Outcome is the effect of memory on one request, for the response header, log, trace and
// metrics.
type Outcome struct {
	Heard

	Status  Status
	Reason  Reason
	Facts   int           // facts in the newest turn's block
	Chars   int           // characters of the newest turn's block
	Took    time.Duration // duration of all decisions; the caller of Plan measures it
	Source  Source
	Held    int    // messages of the conversation that are held
	Lost    int    // messages of the conversation that were lost
	Quota   string // reached quota, which prevents storing the message, or ""
	Earlier string // number of the request's other new messages for each of their fates, or ""
}

// Append appends the outcome in the format of the X-Graphiti-Memory response header.
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
	return o.appendCounts(b)
}
