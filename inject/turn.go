package inject

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// turn is one request's newest turn, while it is decided about.
type turn struct {
	c        *dialect.Conversation
	began    time.Time // when the request came in
	deadline time.Time // of looking things up
	until    time.Time // the request waits no longer
	first    bool      // the session was unknown until now
	forgets  int64     // as it was when the turn came in
	groups   []string
	at       []int // the messages that persons wrote
	keys     [][16]byte
	earlier  []Decision // for each of at; the last is the newest turn's
	found    []bool
	since    []time.Time // when the requests came in for which it was decided; zero: it was not
	err      error       // of the look-up
	decision Decision    // about the newest turn
	looks    []Searched
	own      Key // of a request that is no turn; zero where it is one
}

// lookUp finds what was decided about every message that a person wrote.
func (t *turn) lookUp(b Blocks, chain []dialect.Fingerprint, session string, first bool) {
	for i := 0; i <= t.c.Last; i++ {
		if t.c.Messages[i].Person {
			t.at = append(t.at, i)
			t.keys = append(t.keys, TurnKey(session, chain[i]))
		}
	}
	t.earlier, t.found, t.since = make([]Decision, len(t.keys)), make([]bool, len(t.keys)), make([]time.Time, len(t.keys))
	if first {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), t.deadline)
	defer cancel()
	t.err = b.Lookup(ctx, t.keys, func(i int, block string, facts int, since time.Time) {
		t.earlier[i], t.found[i], t.since[i] = decision(block, facts), true, since
	})
}

func (t *turn) key() Key {
	if t.own != (Key{}) {
		return t.own
	}
	return Key(t.keys[len(t.keys)-1])
}

// lookBack is how many earlier turns are looked at that an earlier process
// knew: it may have ended before all their answers were kept.
const lookBack = 50

// unseen are the newest earlier turns, less those that were not to be kept: of
// those that nobody knew, most at most. Where that could not be looked up they are in doubt.
func (t *turn) unseen(most int) (turns []Unseen) {
	earlier := len(t.at) - 1
	for n := max(0, earlier-max(most, lookBack)); n < earlier; n++ {
		u := Unseen{Turn: Key(t.keys[n]), Message: t.at[n], Since: t.since[n], back: earlier - n, doubt: t.err != nil}
		if u.doubt || u.wanted(t.found[n], t.earlier[n], most) {
			turns = append(turns, u)
		}
	}
	return turns
}

// wanted reports whether a turn is to be kept about which was decided, or was
// not.
func (u *Unseen) wanted(found bool, d Decision, most int) bool {
	return (found || u.back <= most) && !d.Unkept
}

// Sure are those of some unseen turns that are to be kept. What could not be
// looked up in the time of their request is looked up now, for which it may
// wait.
func (m *Memory) Sure(ctx context.Context, turns []Unseen) ([]Unseen, error) {
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
	found, decided := make([]bool, len(turns)), make([]Decision, len(turns))
	err := m.opts().Blocks.Lookup(ctx, keys, func(i int, block string, facts int, since time.Time) {
		found[i], decided[i], turns[i].Since = true, decision(block, facts), since
	})
	if err != nil {
		return nil, err
	}
	var sure []Unseen
	for i, u := range turns {
		if u.wanted(found[i], decided[i], m.opts().Unseen) {
			sure = append(sure, u)
		}
	}
	return sure, nil
}

// forgotten reports whether the conversation has lost a block.
func (t *turn) forgotten() bool {
	return slices.ContainsFunc(t.earlier, Decision.forgotten)
}

// repeated returns the inserts of the earlier turns: the same bytes in the
// same places as ever.
func (t *turn) repeated() []dialect.Insert {
	var inserts []dialect.Insert
	for n := range len(t.at) - 1 {
		if t.found[n] && t.earlier[n].Block != "" {
			inserts = append(inserts, t.c.Insert(t.at[n], t.earlier[n].Block))
		}
	}
	return inserts
}

// episodes are the names under which the conversation's own turns are kept.
func (t *turn) episodes() map[string]struct{} {
	names := make(map[string]struct{}, 2*len(t.keys))
	for _, k := range t.keys {
		id := Key(k).String()
		names[graphiti.EpisodeName(id, graphiti.RoleUser)] = struct{}{}
		names[graphiti.EpisodeName(id, graphiti.RoleAssistant)] = struct{}{}
	}
	return names
}

// blocks are the texts of the blocks that the conversation shows.
func (t *turn) blocks() []string {
	var b []string
	for _, d := range t.earlier {
		if d.Block != "" {
			b = append(b, d.Block)
		}
	}
	return b
}
