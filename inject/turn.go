package inject

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// turn is one request's newest turn, while it is decided about.
type turn struct {
	c        *dialect.Conversation
	o        *options          // in force when the request came
	mode     Mode              // what may be done for the request
	kind     dialect.Kind      // KindTurn, or what else the request is for
	deadline time.Time         // of looking things up
	until    time.Time         // the request waits no longer
	first    bool              // the session was unknown until now
	owner    string            // whose turn it is
	reads    []graphiti.Target // what is searched
	groups   []string
	*lists
	earlier  []*Decision // for each of at, nil where nothing was decided; the last is the newest turn's
	err      error       // of the look-up
	decision *Decision   // about the newest turn; nil: there is none
	decided  bool        // for this request
	looks    []Searched
	own      TurnKey // of a request that is no turn; zero where it is one
	session  TurnKey // see sessionID
}

// lists are what is noted of each message that a person wrote.
type lists struct {
	at   []int // where it stands among all messages
	from []dialect.Fingerprint
	keys [][16]byte
}

// pooled lists are used again and again: a long conversation has a thousand turns.
var pooled = sync.Pool{New: func() any { return new(lists) }}

// lookUp finds what was decided about every message that a person wrote.
func (m *Memory) lookUp(ctx context.Context, t *turn, chain []dialect.Fingerprint, who graphiti.Who) {
	t.at, t.from = t.at[:0], t.from[:0]
	for i := 0; i <= t.c.Last; i++ {
		if t.c.Messages[i].Person {
			t.at = append(t.at, i)
			t.from = append(t.from, chain[i])
		}
	}
	m.nameTurns(t, who)
	if !t.first {
		t.earlier, t.err = t.o.Decisions.Lookup(ctx, t.mode.Generation, t.keys)
	}
	if t.earlier == nil {
		t.earlier = make([]*Decision, len(t.keys))
	}
}

// nameTurns finds the keys of the turns.
func (m *Memory) nameTurns(t *turn, who graphiti.Who) {
	known := &turnKeys{}
	if len(t.from) >= turnsMin {
		known = &m.session(t.sessionID(who)).keys
	}
	var more *turnKeys
	if t.keys, more = known.append(t.keys[:0], who.Session, t.from); more != nil {
		m.change(t.sessionID(who), func(s *session) { s.keys = *more })
	}
}

func (t *turn) key() TurnKey {
	if t.own != (TurnKey{}) {
		return t.own
	}
	return TurnKey(t.keys[len(t.keys)-1])
}

// lookBack is how many earlier turns with a decision are looked at. An earlier process
// decided about them, and may have ended before all their answers were kept.
const lookBack = 50

// unseen returns the newest earlier turns, without those that were not to be kept. Of
// turns without a decision it returns only those that the setting Unseen reaches. A turn
// whose decision could not be looked up is in doubt.
func (t *turn) unseen() (turns []Unseen) {
	most := t.o.Unseen
	earlier := len(t.at) - 1
	from := max(0, earlier-max(most, lookBack))
	turns = make([]Unseen, 0, earlier-from)
	for n := from; n < earlier; n++ {
		turns = append(turns, Unseen{Turn: TurnKey(t.keys[n]), Message: t.at[n], back: earlier - n, doubt: t.err != nil})
	}
	date(turns, t.earlier[from:earlier], t.earlier[earlier].of(t.mode.Generation))
	kept := turns[:0]
	for i, u := range turns {
		if u.doubt || u.wanted(t.earlier[from+i], most) {
			kept = append(kept, u)
		}
	}
	return kept
}

// date sets the generations of turns. Each is that of the turn's decision, or for a turn
// without one that of the turn behind it; the last turn was said before a request of
// generation.
func date(turns []Unseen, decided []*Decision, generation int64) {
	for i := len(turns) - 1; i >= 0; i-- {
		generation = min(generation, decided[i].of(generation))
		turns[i].Generation = generation
	}
}

// of is the generation of a decision, or another one where there is none.
func (d *Decision) of(other int64) int64 {
	if d == nil {
		return other
	}
	return d.Generation
}

// wanted reports whether an earlier turn is to be kept, by the decision about it; d is
// nil if there is none.
func (u *Unseen) wanted(d *Decision, most int) bool {
	if d == nil {
		return u.back <= most
	}
	return d.Ingest
}

// ToBackfill returns those of some unseen turns that are to be recorded. It looks up the
// decisions that the request had no time for, and may wait for them.
func (m *Memory) ToBackfill(ctx context.Context, turns []Unseen) ([]Unseen, error) {
	if !slices.ContainsFunc(turns, func(u Unseen) bool { return u.doubt }) {
		return turns, nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.opts().Background)
	defer cancel()
	turns = slices.Clone(turns)
	keys := make([][16]byte, len(turns))
	for i := range turns {
		keys[i] = turns[i].Turn
	}
	newest := turns[len(turns)-1].Generation
	decided, err := m.opts().Decisions.Lookup(ctx, newest, keys)
	if err != nil {
		return nil, err
	}
	date(turns, decided, newest)
	var sure []Unseen
	for i, u := range turns {
		if u.wanted(decided[i], m.opts().Unseen) {
			sure = append(sure, u)
		}
	}
	return sure, nil
}

// forgotten reports whether the conversation has lost a block.
func (t *turn) forgotten() bool {
	return slices.ContainsFunc(t.earlier, (*Decision).forgotten)
}

// repeated returns the inserts of the earlier turns: the same bytes in the
// same places as ever.
func (t *turn) repeated() []dialect.Insert {
	blocks := 1 // the newest turn's
	for _, d := range t.earlier {
		if d != nil && d.Block != "" {
			blocks++
		}
	}
	inserts := make([]dialect.Insert, 0, blocks)
	for n := range len(t.at) - 1 {
		if d := t.earlier[n]; d != nil && d.Block != "" {
			inserts = append(inserts, t.c.Insert(t.at[n], d.Block))
		}
	}
	return inserts
}

// episodes are the names under which the conversation's own turns are kept.
func (t *turn) episodes() map[string]struct{} {
	names := make(map[string]struct{}, 2*len(t.keys))
	for _, k := range t.keys {
		id := TurnKey(k).String()
		names[graphiti.EpisodeName(id, graphiti.RoleUser)] = struct{}{}
		names[graphiti.EpisodeName(id, graphiti.RoleAssistant)] = struct{}{}
	}
	return names
}

// blocks are the texts of the blocks that the conversation shows.
func (t *turn) blocks() []string {
	var b []string
	for _, d := range t.earlier {
		if d != nil && d.Block != "" {
			b = append(b, d.Block)
		}
	}
	return b
}

// Writes returns the groups that a turn is to be kept in.
func (m *Memory) Writes(who graphiti.Who) []graphiti.Target { return m.opts().Writes(who) }
