package inject

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Verdict says why a fact that was found is shown or not.
type Verdict string

// The verdicts.
const (
	Shown       Verdict = "shown"
	NotValid    Verdict = "not valid now"
	OwnWords    Verdict = "said in this conversation"
	Visible     Verdict = "in an earlier block of this conversation"
	Repeated    Verdict = "repeats another"
	Superseded  Verdict = "a newer one says otherwise"
	Instruction Verdict = "reads like an instruction"
	Empty       Verdict = "says nothing that can be shown"
	NoRoom      Verdict = "no room"
	NoDrift     Verdict = "nothing else is spoken of than before"
	Weak        Verdict = "too weak, as all that was found"
	Unneeded    Verdict = "known of the person, where nothing else answers"
)

// Scoped holds the facts that were found in one scope, best first.
type Scoped struct {
	Scope graphiti.Scope
	Facts []graphiti.Fact
}

// Candidate is a fact that was found, and the verdict on it.
type Candidate struct {
	Fact    *graphiti.Fact
	Scope   graphiti.Scope
	Line    string // as it is shown
	Verdict Verdict

	head string // of the line, that others may share
}

// Guard says what is done with facts that read like instructions to a model.
type Guard string

// The guards.
const (
	GuardQuote Guard = "quote" // shown as somebody's words
	GuardDrop  Guard = "drop"  // left out
	GuardOff   Guard = "off"
)

// chooser decides which of the facts found are worth showing.
type chooser struct {
	now        time.Time
	staleAfter time.Duration
	ownTurns   map[string]struct{} // episodes that the conversation itself shows
	visible    map[string]struct{} // what earlier blocks of the conversation show: line.In
	opening    map[string]struct{} // what the block begins with: line.In
	guard      Guard
	laid       bool         // the facts are what a person laid down
	minScore   float64      // strength that one fact must have for any to be shown; 0: none
	drift      float64      // likeness to what is visible from which nothing new is shown; 0: never
	elsewhere  otherSubject // nil: the memory weighs its facts
	count, max int          // bounds of the block: facts and characters
}

// choose gives every fact a verdict. It takes the scopes in the order given. It shows no
// fact that is not valid now, none twice, the newer one of two versions, none that the
// conversation still shows, and no more than there is room for.
func (ch *chooser) choose(found []Scoped) []Candidate {
	var all []Candidate
	for _, s := range found {
		for i := range s.Facts {
			all = append(all, ch.look(&s.Facts[i], s.Scope))
		}
	}
	ch.once(all)
	if ch.settled(all) {
		dismiss(all, NoDrift)
	}
	ch.ofPerson(all, slices.ContainsFunc(found, func(s Scoped) bool { return s.Scope == graphiti.ScopeWorkspace }))
	if ch.weak(all) {
		dismiss(all, Weak)
	}
	ch.fit(all)
	return all
}

// dismiss gives all facts that would be shown another verdict: nothing is shown.
func dismiss(all []Candidate, why Verdict) {
	for i := range all {
		if all[i].Verdict == Shown {
			all[i].Verdict = why
		}
	}
}

// ofPerson keeps, in a project, only those facts about the person that are strong enough
// by themselves. If no fact of any scope is strong enough, it keeps what the person said
// last about themselves.
func (ch *chooser) ofPerson(all []Candidate, inProject bool) {
	answered := false
	for i := range all {
		f := all[i].Fact
		strong := !f.Weighed || f.Strength >= ch.minScore
		if inProject && isPersonal(all[i].Scope) && !f.Profile && !strong && all[i].Verdict == Shown {
			all[i].Verdict = Weak
		}
		answered = answered || strong && !f.Profile && (all[i].Verdict == Shown || all[i].Verdict == Visible)
	}
	for i := range all {
		if all[i].Fact.Profile && all[i].Verdict == Shown && (answered || !inProject) {
			all[i].Verdict = Unneeded
		}
	}
}

// weak reports whether no fact that would be shown is strong enough. An unweighed fact
// counts as strong.
func (ch *chooser) weak(all []Candidate) bool {
	for i := range all {
		if f := all[i].Fact; all[i].Verdict == Shown && (!f.Weighed || f.Profile || f.Strength >= ch.minScore) {
			return false
		}
	}
	return true
}

// lines returns the lines of the facts that are shown.
func lines(all []Candidate) []string {
	var out, heads []string
	for i := range all {
		if all[i].Verdict == Shown {
			out, heads = append(out, all[i].Line), append(heads, all[i].head)
		}
	}
	return joinLines(out, heads)
}

// look decides about a fact by itself.
func (ch *chooser) look(f *graphiti.Fact, scope graphiti.Scope) Candidate {
	c := Candidate{Fact: f, Scope: scope, Verdict: Shown}
	text := lineOf(f.Text)
	c.Line = text + ch.when(f)
	c.head = lineHead(c.Line, f.Said)
	_, own := ch.ownTurns[f.Episode]
	switch {
	case !ch.valid(f):
		c.Verdict = NotValid
	case own && f.Episode != "":
		c.Verdict = OwnWords
	case text == "":
		c.Verdict = Empty
	case ch.shows(text):
		c.Verdict = Visible
	case ch.opens(text):
		c.Verdict = Repeated
	default:
		ch.guarded(&c, text)
	}
	return c
}

// guarded judges what a fact says, behind who said it.
func (ch *chooser) guarded(c *Candidate, text string) {
	label := "somebody said: "
	said := text
	if c.Fact.Dated {
		label = lineLabel(text)
		said = text[len(label):]
	}
	shown, ok := ch.guard.of(said, ch.laid)
	switch {
	case !ok:
		c.Verdict = Instruction
	case shown != said:
		c.Line = label + shown + ch.when(c.Fact)
		if ch.shows(label + shown) {
			c.Verdict = Visible
		}
	}
}

// of is a text as it is shown behind who said it, and whether it is shown at all.
// laid says that a person laid it down, who may tell a model what to do.
func (g Guard) of(text string, laid bool) (shown string, ok bool) {
	judge := Instructs
	if laid {
		judge = Overrides
	}
	switch {
	case g == GuardOff || !judge(text):
		return text, true
	case g == GuardDrop:
		return "", false
	}
	return "“" + unquoted.Replace(strings.Trim(text, "“”\"")) + "”", true
}

// unquoted keeps a text from ending the quotes that it stands in.
var unquoted = strings.NewReplacer("“", "‘", "”", "’")

func (ch *chooser) valid(f *graphiti.Fact) bool {
	over := func(t time.Time) bool { return !t.IsZero() && !t.After(ch.now) }
	return !over(f.ExpiredAt) && !over(f.InvalidAt) && !f.ValidAt.After(ch.now)
}

func (ch *chooser) shows(text string) bool {
	_, ok := ch.visible[text]
	return ok
}

func (ch *chooser) opens(text string) bool {
	_, ok := ch.opening[text]
	return ok
}

// alikeFrom is the likeness, of the words of two statements, from which they
// are versions of one.
const alikeFrom = 0.8

// once keeps only the newest of facts that say the same.
func (ch *chooser) once(all []Candidate) {
	ids, texts, messages := make(map[string]bool), make(map[string]int), make(map[string]bool)
	words := make([]map[string]bool, len(all))
	for i := range all {
		c := &all[i]
		if c.Verdict != Shown {
			continue
		}
		text := normal(c.Fact.Text)
		message := c.Fact.Episode != "" && c.Fact.Dated // a part of it may stand in another group
		if _, same := texts[text]; same || c.Fact.UUID != "" && ids[c.Fact.UUID+c.Fact.Group] || message && messages[c.Fact.Episode] {
			c.Verdict = Repeated
			continue
		}
		messages[c.Fact.Episode] = true
		texts[text] = i
		if c.Fact.UUID != "" {
			ids[c.Fact.UUID+c.Fact.Group] = true
		}
		if c.Fact.Dated { // what was said then stays said
			continue
		}
		words[i] = wordSet(text)
		for j := range i {
			o := &all[j]
			if o.Verdict != Shown || words[j] == nil || !sameStatement(c.Fact, o.Fact) && likeness(words[i], words[j]) < alikeFrom {
				continue
			}
			if began(c.Fact).After(began(o.Fact)) {
				o.Verdict = Superseded
				continue
			}
			c.Verdict = Superseded
			break
		}
	}
}

// sameStatement reports whether two facts relate the same things in the same
// way.
func sameStatement(a, b *graphiti.Fact) bool {
	return a.Name != "" && a.Name == b.Name && a.Source != "" && a.Source == b.Source && a.Target != "" && a.Target == b.Target
}

// otherSubject reports whether new facts are about something else than visible ones.
type otherSubject func(fresh, visible []string) bool

// otherSubjectOf tells it by the words of a query: new facts have one that nothing
// visible has. It is always so where the query leans on what was asked before, which is
// what the visible facts are about.
func otherSubjectOf(query string) otherSubject {
	question, _, leaning := strings.Cut(query, graphiti.Earlier)
	if leaning {
		return func(_, _ []string) bool { return true }
	}
	asked := terms(question, maxQuery)
	return func(fresh, visible []string) bool {
		known := make(map[string]bool)
		for _, text := range visible {
			maps.Copy(known, terms(text, maxQuery))
		}
		return slices.ContainsFunc(fresh, func(text string) bool {
			for t := range terms(text, maxQuery) {
				if asked[t] && !known[t] {
					return true
				}
			}
			return false
		})
	}
}

// settled reports whether a turn is about what is visible already: the best fact found
// is visible, and most of the others are. The few new ones were found by other words for
// the same. It is false if one of them is strong, or if their words are about something
// else.
func (ch *chooser) settled(all []Candidate) bool {
	if ch.drift <= 0 || len(all) == 0 {
		return false
	}
	var visible, fresh []string
	first := Shown
	for i := range all {
		switch text := all[i].Fact.Text; all[i].Verdict {
		case Visible:
			visible = append(visible, text)
		case Shown:
			if all[i].Fact.Weighed && all[i].Fact.Strength >= ch.minScore {
				return false
			}
			fresh = append(fresh, text)
		default:
			continue
		}
		if len(visible)+len(fresh) == 1 {
			first = all[i].Verdict
		}
	}
	return first == Visible && float64(len(visible)) >= ch.drift*float64(len(visible)+len(fresh)) &&
		(ch.elsewhere == nil || !ch.elsewhere(fresh, visible))
}

// personal is the part of a block that is for what is known of the person, and
// of the agent, while there is enough of the project. Either lends the other
// what it does not use.
const personal = 0.3

func isPersonal(s graphiti.Scope) bool { return s == graphiti.ScopeUser || s == graphiti.ScopeAgent }

// fit leaves what there is room for, whole facts only.
func (ch *chooser) fit(all []Candidate) {
	room := ch.max - utf8.RuneCountInString(blockOpen+blockFrame+blockClose)
	taken, heads := make([]bool, len(all)), make(map[string]bool)
	used, count := 0, 0
	fill := func(room, count int, which func(*Candidate) bool) (used, n int) {
		for i := range all {
			c := &all[i]
			if taken[i] || c.Verdict != Shown || !which(c) {
				continue
			}
			shared := c.head != "" && heads[c.head]
			size := lineSize(c.Line, c.head, shared)
			if n == count && !shared || used+size > room {
				continue
			}
			taken[i], heads[c.head] = true, true
			used += size
			if !shared {
				n++
			}
		}
		return used, n
	}
	share := personal
	if !slices.ContainsFunc(all, func(c Candidate) bool { return c.Verdict == Shown && !isPersonal(c.Scope) }) {
		share = 1
	}
	for _, part := range []struct {
		share float64
		which func(*Candidate) bool
	}{
		{1 - personal, func(c *Candidate) bool { return !isPersonal(c.Scope) }},
		{share, func(c *Candidate) bool { return isPersonal(c.Scope) }},
		{1, func(*Candidate) bool { return true }}, // what one did not use
	} {
		u, n := fill(min(int(part.share*float64(room)), room-used), min(int(part.share*float64(ch.count)+0.5), ch.count-count), part.which)
		used, count = used+u, count+n
	}
	for i := range all {
		if all[i].Verdict == Shown && !taken[i] {
			all[i].Verdict = NoRoom
		}
	}
}

func began(f *graphiti.Fact) time.Time {
	if f.ValidAt.IsZero() {
		return f.CreatedAt
	}
	return f.ValidAt
}

// when says since when a fact holds, and how old it is if it is older than staleAfter.
func (ch *chooser) when(f *graphiti.Fact) string {
	if f.Dated {
		return ""
	}
	t, since := began(f), ""
	if !f.ValidAt.IsZero() {
		since = "since " + f.ValidAt.UTC().Format(time.DateOnly)
	}
	if t.IsZero() || ch.staleAfter <= 0 || ch.now.Sub(t) < ch.staleAfter {
		if since == "" {
			return ""
		}
		return " (" + since + ")"
	}
	old := fmt.Sprintf("%d days old", int(ch.now.Sub(t)/(24*time.Hour)))
	if since == "" {
		return " (" + old + ")"
	}
	return " (" + since + ", " + old + ")"
}

// normal is a text by which equal statements are known.
func normal(s string) string {
	b, gap := make([]byte, 0, len(s)), false
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			return normalIn(s)
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		default:
			gap = len(b) > 0
			continue
		}
		if gap {
			b, gap = append(b, ' '), false
		}
		b = append(b, c)
	}
	return string(b)
}

// normalIn is normal for texts that are not ASCII.
func normalIn(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), " ")
}

func wordSet(s string) map[string]bool {
	out := make(map[string]bool)
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// likeness is the share of words that two sets have in common (Jaccard's).
func likeness(a, b map[string]bool) float64 {
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	if all := len(a) + len(b) - both; all > 0 {
		return float64(both) / float64(all)
	}
	return 0
}
