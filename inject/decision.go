package inject

import (
	"context"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Decision is what was decided about a turn: the block that stands before its
// message in every request, or none. The first one stands; its block is emptied
// when what it shows is forgotten, and nothing else of it changes.
type Decision struct {
	Block      string // empty: there is none, or not any more
	Facts      int    // that the block shows, or has shown
	Reason     string // why there is no block, where there never was one
	Ingest     bool   // the turn is to be kept
	Generation int64  // of the request for which it was made
}

// forgotten reports whether there was a block that was emptied, because what it
// showed was to be forgotten.
func (d *Decision) forgotten() bool { return d != nil && d.Block == "" && d.Facts > 0 }

// Decisions keeps what was decided over the life of a conversation, restarts
// included. Implementations must not retain the slices, and nobody changes what
// they return.
type Decisions interface {
	// Lookup returns what was decided about each key, nil where nothing was. It
	// answers from memory where it can, with what was read under the same
	// generation. With an error it returns what was in memory, or nothing.
	Lookup(ctx context.Context, generation int64, keys [][16]byte) ([]*Decision, error)

	// Keep stores a decision and returns the one in force, which is an earlier
	// one where there was one. It shows nothing where one of the groups has a
	// newer generation. It is stored when Keep returns.
	Keep(ctx context.Context, key [16]byte, d Decision, groups ...string) (*Decision, error)
}

// decide finds the newest turn's decision: the one that was made, or a new one
// that is stored before it is used.
func (m *Memory) decide(t *turn, who graphiti.Who, mode Mode) Outcome {
	made := t.earlier[len(t.earlier)-1]
	switch {
	case made != nil && made.Block == "" && t.forgotten():
		t.decision = made
		return Outcome{Status: StatusOff, Reason: ReasonForgotten}
	case made != nil:
		t.decision = made
		o := outcomeOf(made, SourceSticky)
		if made.Block == "" && !mode.Recall {
			o = Outcome{Status: StatusOff, Reason: mode.Reason}
		}
		return o
	case t.err != nil:
		// What was decided is not known, so nothing new may be: it could not
		// be stored either.
		m.opts().Log.Warn("decisions cannot be read", "error", t.err)
		return Outcome{Status: StatusError, Reason: ReasonNotPersisted}
	case t.kind != dialect.KindTurn:
		return Outcome{Status: StatusSkipped, Reason: kindReasons[t.kind]}
	}
	var d Decision
	var o Outcome
	switch {
	case !mode.Recall:
		o = Outcome{Status: StatusOff, Reason: mode.Reason}
	case t.forgotten():
		o = Outcome{Status: StatusOff, Reason: ReasonForgotten}
	case mode.Nobody:
		o = Outcome{Status: StatusEmpty, Reason: ReasonNobody}
	case t.c.Answered():
		// A tool round of a turn about which nothing is known: it began
		// without a block, or the state was lost. It goes on without.
		o = Outcome{Status: StatusEmpty, Reason: ReasonNothing}
	default:
		d, o = m.recall(t, who, query(t.c, m.opts().Search.Weighs()))
	}
	if d.Ingest = mode.Ingest; d.Block == "" {
		d.Reason = string(o.Reason)
	}
	return m.keep(t, d, o)
}

// keep stores the decision; one that cannot be stored is not used.
func (m *Memory) keep(t *turn, d Decision, o Outcome) Outcome {
	ctx, cancel := context.WithDeadline(context.Background(), t.until)
	defer cancel()
	d.Generation = t.generation
	kept, err := m.opts().Decisions.Keep(ctx, t.key(), d, t.groups...)
	if err != nil {
		m.opts().Log.Warn("a block cannot be kept and is not inserted", "error", err)
		if d.Block == "" {
			return o
		}
		return Outcome{Status: StatusError, Reason: ReasonNotPersisted}
	}
	t.decision = kept
	if kept.Block == d.Block {
		return o
	}
	if kept.Generation == d.Generation && kept.Block == "" { // what was found was forgotten since
		return Outcome{Status: StatusEmpty, Reason: ReasonNothing}
	}
	return outcomeOf(kept, SourceSticky) // a request for the same turn was faster
}

func outcomeOf(d *Decision, s Source) Outcome {
	if d.Block == "" {
		return Outcome{Status: StatusEmpty, Source: s, Reason: Reason(d.Reason)}
	}
	return Outcome{Status: StatusRecalled, Facts: d.Facts, Chars: utf8.RuneCountInString(d.Block), Source: s}
}
