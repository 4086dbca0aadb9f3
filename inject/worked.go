package inject

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/inject/work"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// Round is a tool round.
type Round = work.Round

// Experience stores the agents' knowledge of a project, by its group. Forgetting the group,
// or the session that an entry is from, deletes the entry. Old entries expire.
type Experience interface {
	// PutExperience adds or replaces an entry of a list, such as Passes.
	PutExperience(ctx context.Context, list, group, key string, entry []byte, generation int64, scopes ...string) error

	// Experience calls f for the entries of a group, oldest first in each list.
	Experience(ctx context.Context, group string, f func(list string, entry []byte)) error
}

// The lists of Experience.
const (
	Passes   = "pass"    // commands that passed
	Cures    = "cure"    // errors that went away
	Findings = "finding" // results of subagents
)

// known is the decoded experience of a project, cached for a while: other replicas add to it.
type known struct {
	generation int64
	until      time.Time
	passes     []entry[work.Pass]
	cures      []entry[work.Cure]
	findings   []entry[finding]
}

// finding is a result of a subagent of a session, by its hash. Its own session has the result
// already.
type finding struct {
	work.Finding
	Session string `json:"session"`
}

// entry is an entry of a list, with the words that a question about it may have.
type entry[T any] struct {
	of    T
	words []string
}

const (
	knownFor   = time.Minute
	knownLines = 2   // of each list in a block
	knownChars = 600 // limit in a block
	toolLabel  = "seen in the agent's tool calls: "
)

// Words that a question may have instead of those in an entry, in the form of words.Of.
var (
	testWords  = words.Of("tests run check suite führe ausführen laufen lancer ejecutar", 16)
	runWords   = words.Of("run command start build führe ausführen starten lancer ejecutar", 16)
	faultWords = words.Of("error errors fail failing failure problem bug exception fix fixed solve solved Fehler Problem gelöst behoben erreur corriger résolu fallo arreglar", 32)
	agentWords = words.Of("subagent agent find found result report finden gefunden herausgefunden Ergebnis trouver trouvé résultat encontrar encontró resultado", 32)
	whenWords  = words.Of("last time week month day yesterday again back ago before letzte Woche wieder Mal getan gestern dernière fois semaine última vez semana", 32)
)

// Worked adds a tool round of a turn to the notes of its session, and its results to the
// experience of the project. It may wait for a file, so requests must not call it.
func (m *Planner) Worked(who graphiti.Who, generation int64, r *Round) {
	if who.Session == "" {
		return
	}
	r.Redact = func(text string) string {
		text, _ = m.opts().Redact(text, time.Time{})
		return text
	}
	ctx, cancel := context.WithTimeout(m.base, m.opts().Background)
	defer cancel()
	var n work.News
	err := m.note(ctx, who, generation, func(s *snapshot) {
		n = s.Work.Add(r)
		s.take(s.note())
	})
	if err != nil {
		m.opts().Log.Debug("write session snapshot failed", "error", err)
		return
	}
	m.learn(ctx, who, generation, &n)
}

// projectOf returns the first group of a project.
func projectOf(groups []graphiti.Target) (t graphiti.Target, ok bool) {
	i := slices.IndexFunc(groups, func(t graphiti.Target) bool { return t.Scope == graphiti.ScopeWorkspace })
	if i < 0 {
		return t, false
	}
	return groups[i], true
}

// learn stores the results of a round, or of a subagent, for the project.
func (m *Planner) learn(ctx context.Context, who graphiti.Who, generation int64, n *work.News) {
	t, ok := projectOf(m.opts().Writes(who))
	if !ok || len(n.Passed)+len(n.Cures)+len(n.Failed)+len(n.Found) == 0 {
		return
	}
	group, scopes := t.Group, m.scopes(who)
	k := m.read(ctx, group, generation)
	put := func(list, key string, entry any) {
		body, _ := json.Marshal(entry) // strings and numbers only
		sum := graphiti.Digest("experience", list, key)
		if err := m.opts().Experience.PutExperience(ctx, list, group, hex.EncodeToString(sum[:16]), body, generation, scopes...); err != nil {
			m.opts().Log.Debug("store experience failed", "error", err)
		}
	}
	now := time.Now().Unix()
	for _, p := range n.Passed {
		for i := range k.passes {
			if was := &k.passes[i].of; was.Command == p.Command {
				p.Count += was.Count
			}
		}
		put(Passes, p.Command, p)
	}
	for _, f := range n.Failed {
		for i := range k.passes {
			if p := k.passes[i].of; p.Command == f.Command {
				p.Failed = now
				put(Passes, p.Command, p)
			}
		}
		for i := range k.cures {
			if c := k.cures[i].of; c.Key == f.Key && c.Back == 0 {
				c.Back = now
				put(Cures, c.Key, c)
			}
		}
	}
	for _, c := range n.Cures {
		put(Cures, c.Key, c)
	}
	for _, f := range n.Found {
		put(Findings, strconv.FormatUint(f.Task, 16), finding{f, graphiti.SessionHash(who.Session)})
	}
	m.opts().Memo.Update(experienceKey(group), func(any) (any, int) { return nil, 0 })
}

func experienceKey(group string) memo.Key {
	sum := graphiti.Digest("experience", group)
	return memo.Key{Kind: memo.Turns, Owner: memo.Owner(sum[:16])}
}

// read returns the experience of a project.
func (m *Planner) read(ctx context.Context, group string, generation int64) *known {
	key := experienceKey(group)
	if k, ok := m.opts().Memo.Get(key).(*known); ok && k.generation == generation && time.Now().Before(k.until) {
		return k
	}
	k, size := &known{generation: generation, until: time.Now().Add(knownFor)}, 0
	err := m.opts().Experience.Experience(ctx, group, func(list string, body []byte) {
		size += 8 * len(body) // with the words
		switch list {
		case Passes:
			var p work.Pass
			if json.Unmarshal(body, &p) == nil {
				kind := runWords
				if p.Summary != "" {
					kind = slices.Concat(runWords, testWords)
				}
				k.passes = append(k.passes, entry[work.Pass]{p, append(words.Of(p.Command, 32), kind...)})
			}
		case Cures:
			var c work.Cure
			if json.Unmarshal(body, &c) == nil {
				text := strings.Join(append([]string{c.Line, c.Command, c.With}, c.Changed...), " ")
				k.cures = append(k.cures, entry[work.Cure]{c, append(words.Of(text, 48), faultWords...)})
			}
		case Findings:
			var f finding
			if json.Unmarshal(body, &f) == nil {
				k.findings = append(k.findings, entry[finding]{f, append(words.Of(f.Asked+" "+f.Result, 48), agentWords...)})
			}
		}
	})
	if err != nil {
		m.opts().Log.Debug("read experience failed", "error", err)
		return k
	}
	m.opts().Memo.Update(key, func(any) (any, int) { return k, size })
	return k
}

// experience returns lines for a person's message: cures of its errors and of open errors in
// its session, and the entries that match its question.
func (m *Planner) experience(t *turn, who graphiti.Who) (lines []string) {
	group, ok := projectOf(t.o.Reads(who, false))
	if !ok || !t.o.Work || t.c.Answered() {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), t.deadline)
	defer cancel()
	k := m.read(ctx, group.Group, t.mode.Generation)
	text, _ := t.said()
	said := string(graphiti.Truncate(text, maxQuery))
	asked := askedAbout(said)
	var keys []string
	if len(k.cures) > 0 {
		if keys = work.Keys(said); !t.first {
			keys = append(keys, m.openFaults(ctx, who)...)
		}
	}
	lines = chosen(k.cures, asked, func(c *work.Cure) bool { return slices.ContainsFunc(keys, c.Ends) }, cureLine)
	lines = append(lines, chosen(k.passes, asked, func(*work.Pass) bool { return false }, passLine)...)
	session := graphiti.SessionHash(who.Session)
	return append(lines, chosen(k.findings, asked, func(*finding) bool { return false }, func(f *finding) string {
		if f.Session == session {
			return ""
		}
		return findingLine(f)
	})...)
}

// openFaults returns the keys of the errors in the session that are not cured.
func (m *Planner) openFaults(ctx context.Context, who graphiti.Who) (keys []string) {
	body, err := m.opts().Snapshots.Load(ctx, snapshotKey(who))
	var s snapshot
	if err == nil && body != nil && json.Unmarshal(body, &s) == nil {
		for _, f := range s.Work.Failures {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// askedAbout returns the words of a question, without those for a time.
func askedAbout(said string) []string {
	if !words.Asks(said) && !words.AsksSomething(said) {
		return nil
	}
	return slices.DeleteFunc(words.Of(said, 24), func(w string) bool { return slices.Contains(whenWords, w) })
}

// chosen returns the lines of the sure entries, then of the entries with more than half of a
// question's words, the best first.
func chosen[T any](list []entry[T], asked []string, sure func(*T) bool, line func(*T) string) (lines []string) {
	type ranked struct {
		rank int
		of   *T
	}
	var all []ranked
	for i := len(list) - 1; i >= 0; i-- { // the newest first
		e, hits := &list[i], 0
		for _, w := range asked {
			if slices.Contains(e.words, w) {
				hits++
			}
		}
		switch {
		case sure(&e.of):
			all = append(all, ranked{len(asked) + 1, &e.of})
		case 2*hits > len(asked):
			all = append(all, ranked{hits, &e.of})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return b.rank - a.rank })
	for _, r := range all {
		if l := line(r.of); l != "" && len(lines) < knownLines {
			lines = append(lines, l)
		}
	}
	return lines
}

func cureLine(c *work.Cure) string { return toolLine(c.String()) }

func passLine(p *work.Pass) string { return toolLine(p.String()) }

func findingLine(f *finding) string { return toolLine(f.String()) }

// toolLine returns a line about tool calls. Its foreign texts are quotations already.
func toolLine(line string) string { return lineOf(toolLabel + line) }

// ExperienceLine describes an entry of a list in a line, or returns "".
func ExperienceLine(list string, entry []byte) string {
	switch list {
	case Passes:
		var p work.Pass
		if json.Unmarshal(entry, &p) == nil {
			return p.String()
		}
	case Cures:
		var c work.Cure
		if json.Unmarshal(entry, &c) == nil {
			return c.String()
		}
	case Findings:
		var f finding
		if json.Unmarshal(entry, &f) == nil {
			return f.String()
		}
	}
	return ""
}

// WorkIn returns the work in a snapshot, and the hash of its session.
func WorkIn(body []byte) (session string, turns []work.Turn) {
	var s snapshot
	_ = json.Unmarshal(body, &s) // other texts have no work
	return s.Session, s.Work.Turns
}
