package inject

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// turn is the state of one request's newest turn during its decision.
type turn struct {
	c        *dialect.Conversation
	who      graphiti.Who
	o        *options          // active at the request's arrival
	mode     Mode              // limits of the request
	kind     dialect.Kind      // KindTurn, or the kind of a chore
	deadline time.Time         // for searches
	until    time.Time         // for the whole request
	first    bool              // the session is new
	owner    string            // owner of the turn
	reads    []graphiti.Target // groups to search
	groups   []string

	// The person's messages, as parallel lists.
	at   []int // message index
	from []dialect.Fingerprint
	keys [][16]byte

	earlier  []*Decision // decisions for at, nil if missing; the last is the newest turn's
	err      error       // error of the decision lookup
	decision *Decision   // decision of the newest turn, or nil
	decided  bool        // this request made the decision
	looks    []Searched
	own      TurnKey // key of a request other than a turn, or zero

	// For a summary that replaces the history; see resume.
	resumedAt   int                 // index of the message after its block, or -1
	resumedFrom dialect.Fingerprint // of the history up to it; zero without one
	resumed     *Decision           // its decision, or nil

	found []string // lines that were shown or withheld, without rules and preferences
}

// lookUp loads the decisions of all turns.
func (m *Planner) lookUp(ctx context.Context, t *turn, chain []dialect.Fingerprint, who graphiti.Who) {
	for i := 0; i <= t.c.Last; i++ {
		if t.c.Messages[i].Person {
			t.at = append(t.at, i)
			t.from = append(t.from, chain[i])
			t.keys = append(t.keys, turnKeyOf(who.Session, chain[i]))
		}
	}
	keys := t.keys
	i := t.c.Replaced()
	if i >= 0 {
		t.resumedFrom = chain[i].Link(dialect.RoleUser, t.c.Summary(i))
		keys = append(keys, turnKeyOf(who.Session+resumedKey, t.resumedFrom))
	}
	for t.resumedAt = i; t.resumedAt >= 0 && (t.c.Messages[t.resumedAt].Role != dialect.RoleUser || !t.c.Insertable(t.resumedAt)); {
		t.resumedAt--
	}
	if !t.first {
		t.earlier, t.err = t.o.Decisions.Lookup(ctx, t.mode.Generation, keys)
	}
	if t.earlier == nil {
		t.earlier = make([]*Decision, len(keys))
	}
	if i >= 0 {
		t.resumed, t.earlier = t.earlier[len(t.keys)], t.earlier[:len(t.keys)]
	}
}

// newest returns the decision of the newest turn, or nil.
func (t *turn) newest() *Decision {
	if len(t.earlier) == 0 {
		return nil
	}
	return t.earlier[len(t.earlier)-1]
}

func (t *turn) key() TurnKey {
	if t.own != (TurnKey{}) {
		return t.own
	}
	return TurnKey(t.keys[len(t.keys)-1])
}

// lookBack is the number of earlier turns with a decision to check. A previous process may
// have ended before it stored all their answers.
const lookBack = 50

// unseen returns the newest earlier turns, without those whose decision excludes storage.
// Turns without a decision are limited by the setting Unseen. If the
// lookup of decisions failed, the next request of the conversation lists them. In a conversation whose earlier turns have no decision, the proxy gave none of
// the answers: the history may be examples in a prompt, which wait until it continues. Messages
// without an answer are no examples.
func (t *turn) unseen() (turns []Unseen) {
	if t.err != nil {
		return nil
	}
	most := t.o.Unseen
	earlier := len(t.at) - 1
	began := t.began()
	from := max(0, earlier-max(most, lookBack))
	answered := 0 // the first message after all answers
	if began == earlier {
		answered = t.unanswered()
	}
	generation := t.earlier[earlier].of(t.mode.Generation)
	for n := earlier - 1; n >= from; n-- {
		d := t.earlier[n]
		generation = min(generation, d.of(generation))
		u := Unseen{Turn: TurnKey(t.keys[n]), Message: t.at[n], Generation: generation, Waits: n < answered, back: earlier - n}
		if n < began {
			u.back = began - n
		}
		if !u.wanted(d, most) {
			continue
		}
		if turns == nil {
			turns = make([]Unseen, 0, n+1-from)
		}
		turns = append(turns, u)
	}
	slices.Reverse(turns)
	return turns
}

// began returns the number of the first turn with a decision, or of the newest turn.
func (t *turn) began() int {
	earlier := t.earlier[:len(t.at)-1]
	if n := slices.IndexFunc(earlier, func(d *Decision) bool { return d != nil }); n >= 0 {
		return n
	}
	return len(earlier)
}

// of returns the generation of a decision, or other without one.
func (d *Decision) of(other int64) int64 {
	if d == nil {
		return other
	}
	return d.Generation
}

// wanted reports whether an earlier turn with decision d, or nil, should be stored.
func (u *Unseen) wanted(d *Decision, most int) bool {
	if d == nil {
		return u.back <= most
	}
	return d.Ingest
}

// forgotten reports whether a forget emptied one of the conversation's blocks.
func (t *turn) forgotten() bool {
	return t.resumed.forgotten() || slices.ContainsFunc(t.earlier, (*Decision).forgotten)
}

// repeated returns the inserts that replay the blocks of earlier turns.
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

// said returns the text to search for: the person's newest message after the earlier ones with
// neither an answer nor a decision, as after a failed request. first is the first of them.
func (t *turn) said() (text []byte, first int) {
	n := len(t.at) - 1
	text = t.c.Text(t.at[n])
	from := t.unanswered()
	for ; n > from; n-- {
		text = slices.Concat(text, []byte{'\n'}, t.c.Text(t.at[n-1]))
	}
	return text, t.at[n]
}

// unanswered returns the number of the first of the newest turns without an answer or a decision.
func (t *turn) unanswered() (n int) {
	for n = len(t.at) - 1; n > 0 && t.earlier[n-1] == nil; n-- {
		if _, ended := t.c.AnswerTo(t.at[n-1]); ended {
			break
		}
	}
	return n
}

// episodes returns the episode names of the conversation's turns.
func (t *turn) episodes() map[string]struct{} {
	names := make(map[string]struct{}, 3*len(t.keys))
	for _, k := range t.keys {
		id := TurnKey(k).String()
		names[graphiti.EpisodeName(id, graphiti.RoleUser)] = struct{}{}
		names[graphiti.EpisodeName(id, graphiti.RoleAssistant)] = struct{}{}
		names[graphiti.EpisodeName(id, graphiti.KindWork)] = struct{}{}
	}
	return names
}

// blocks returns the blocks in the conversation.
func (t *turn) blocks() []string {
	var b []string
	for _, d := range append(slices.Clip(t.earlier), t.resumed) {
		if d != nil && d.Block != "" {
			b = append(b, d.Block)
		}
	}
	return b
}

// Searches reports whether a chat with this text searches all of a group, and not only for facts
// that matter in all of the person's projects.
func (m *Planner) Searches(who graphiti.Who, text, group string) bool {
	reads := m.opts().Reads(who, words.Personal(text))
	return slices.ContainsFunc(reads, func(t graphiti.Target) bool { return t.Group == group })
}

// Writes returns the groups that store a turn.
func (m *Planner) Writes(who graphiti.Who) []graphiti.Target { return m.opts().Writes(who) }
