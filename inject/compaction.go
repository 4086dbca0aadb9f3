package inject

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// summary plans a request in which the client summarizes its history. It searches nothing, so
// a slow memory costs the request nothing. The block precedes the client's instruction, which
// later requests omit, so blocks in the history stay unchanged. The decision has a key of its
// own.
func (m *Planner) summary(t *turn, who graphiti.Who, p Plan) Plan {
	p.Outcome = Outcome{Status: StatusSkipped, Reason: ReasonSummary}
	// The instruction may not be a person's message. The fingerprint is then that of the
	// previous turn.
	t.own = turnKeyOf(who.Session+"\x00summary", dialect.Fingerprint(t.keys[len(t.keys)-1]))
	p.Turn = t.own.String()
	if t.mode.Ingest {
		p.Write = t.o.Writes(who)
	}
	if last := t.earlier[len(t.earlier)-1]; t.c.Newest > t.c.Last && last != nil && last.Block != "" {
		p.Inserts = append(p.Inserts, t.c.Insert(t.c.Last, last.Block)) // the last turn is an earlier one
	}
	if !t.mode.Recall || t.mode.Nobody || !t.o.Compaction || t.err != nil || !t.c.Insertable(t.c.Newest) {
		return p
	}
	d := Decision{Ingest: t.mode.Ingest}
	if d.Block, d.Facts = m.toKeep(t, who); d.Block == "" {
		return p
	}
	t.read(who)
	o := m.keep(t, d, outcomeOf(&d, SourceLocal))
	if t.decision == nil || t.decision.Block == "" {
		return p
	}
	p.Outcome = o
	p.Outcome.Reason = ReasonSummary
	p.Inserts = append(p.Inserts, t.c.Insert(t.c.Newest, t.decision.Block))
	return p
}

const (
	shownLines = 32 // newest lines remembered per session

	// comparedMax limits the conversation text, in bytes, that is compared with results.
	comparedMax = 1 << 20

	minWritten = 64 // bytes of a line from which it is compared with answers
)

// shown holds the lines of a session's blocks.
type shown struct {
	generation int64 // generation of the lines
	lines      []string
}

func (s *shown) size() (n int) {
	for _, l := range s.lines {
		n += 16 + len(l)
	}
	return n
}

// show records the lines of a session's blocks. A client that summarizes the session in
// another request omits the blocks, because it never saw them.
func (m *Planner) show(t *turn, who graphiti.Who) {
	id := t.sessionID(who)
	s := m.session(id).shown
	blocks := []string{t.decision.Block}
	switch {
	case s.generation > t.mode.Generation:
		return
	case s.lines == nil || s.generation < t.mode.Generation:
		s, blocks = shown{generation: t.mode.Generation}, append(t.blocks(), t.decision.Block)
	}
	lines := slices.Clip(s.lines) // readers share the array
	for _, b := range blocks {
		for l := range linesOf(b) {
			if !slices.Contains(lines, l) {
				lines = append(lines, l)
			}
		}
	}
	if len(lines) > len(s.lines) {
		s.lines = lines[max(0, len(lines)-shownLines):]
		m.change(id, func(all *sessionMemo) { all.shown = s })
	}
}

// toKeep returns the block for a summary request and its number of facts: the session's notes,
// then the lines of its blocks that the text to summarize does not contain.
func (m *Planner) toKeep(t *turn, who graphiti.Who) (block string, facts int) {
	visible := statementsIn(t.blocks())
	room := min(t.o.MaxChars, roomIn(t.c.Model, t.o.Share, t.o.Window)) - utf8.RuneCountInString(blockOpen+blockFrame+blockClose)
	var kept []string
	add := func(list []string, most int) {
		for _, l := range list {
			size := utf8.RuneCountInString(l) + len("- \n")
			if !visible.has(l) && size <= room && most > 0 {
				kept, room, most = append(kept, l), room-size, most-1
			}
		}
	}
	isSaid := said(t.c)
	session := m.sessionNotes(t, who)
	notes := session.lines(t.o.Guard, room)
	if len(notes) > 0 && isSaid(notes[0]) { // the last question
		notes = notes[1:]
	}
	add(notes, len(notes))
	if s := m.session(t.sessionID(who)).shown; s.generation == t.mode.Generation {
		isOld := func(l string) bool { return isSaid(l) || labelOf(l) == resumes }
		add(withoutRepeats(slices.DeleteFunc(slices.Clone(s.lines), isOld), kept), t.o.MaxFacts)
	}
	return formatBlock(kept, 0)
}

// withoutRepeats returns the lines that state something else than the lines before them, and
// than others.
func withoutRepeats(lines, others []string) (kept []string) {
	var stated []map[string]bool
	for _, l := range others {
		stated = append(stated, statementWords(l))
	}
	for _, l := range lines {
		if words := statementWords(l); !alike(words, stated) {
			kept, stated = append(kept, l), append(stated, words)
		}
	}
	return kept
}

// linesOf yields the lines of a block without their bullets.
func linesOf(block string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(block) {
			if l, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "- "); ok && !yield(l) {
				return
			}
		}
	}
}

// statement returns a line without its label, speaker, date and age.
func statement(line string) string {
	line = line[len(labelOf(line)) : len(line)-len(ageOf(line))]
	return line[len(lineLabel(line)):]
}

// labelOf returns the label at the start of a line, or "".
func labelOf(line string) string {
	for _, label := range labels {
		if strings.HasPrefix(line, label) {
			return label
		}
	}
	return ""
}

// said returns a function that reports whether the conversation contains a line's statement.
func said(c *dialect.Conversation) func(line string) bool {
	return saidBy(c, func(i int) bool { return c.Messages[i].Role != dialect.RoleOther })
}

// written is said for long statements in the model's answers and the client's summary. A person's
// question may contain the statement that answers it.
func written(c *dialect.Conversation) func(line string) bool {
	at := c.SummaryAt()
	isSaid := saidBy(c, func(i int) bool { return i == at || c.Messages[i].Role == dialect.RoleAssistant })
	return func(line string) bool { return len(line) >= minWritten && isSaid(line) }
}

// saidBy is said for the messages of some indexes.
func saidBy(c *dialect.Conversation, of func(i int) bool) func(line string) bool {
	var b strings.Builder
	b.WriteByte(' ')
	for i := len(c.Messages) - 1; i >= 0 && b.Len() < comparedMax; i-- {
		if !of(i) {
			continue
		}
		text := c.Raw(i) // with a client's summary
		b.WriteString(normal(string(text[:min(len(text), comparedMax)])))
		b.WriteByte(' ')
	}
	all := b.String()
	return func(line string) bool {
		text := statement(line)
		words := strings.Fields(normal(text))
		if strings.HasPrefix(text, "…") { // its first word may be cut
			words = words[min(len(words), 1):]
		}
		if strings.HasSuffix(text, "…") {
			words = words[:max(0, len(words)-1)]
		}
		return strings.Contains(all, " "+strings.Join(words, " ")+" ")
	}
}
