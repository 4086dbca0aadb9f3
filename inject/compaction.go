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
func (m *Planner) summary(t *turn, who graphiti.Who, p *Plan) {
	c := t.c
	// The instruction may not be a person's message, and a turn may have several.
	from := t.resumedFrom
	if c.Last >= 0 {
		from = t.from[len(t.from)-1].Link(dialect.RoleOther, from[:])
	}
	if c.Newest > c.Last {
		from = from.Link(dialect.RoleUser, c.Raw(c.Newest))
	}
	own := turnKeyOf(who.Session+"\x00summary", from)
	p.Turn = own.String()
	if t.mode.Ingest {
		p.Write = t.o.Writes(who)
	}
	if c.Newest > c.Last { // the last turn is an earlier one
		p.repeatNewest(t)
	}
	p.Outcome = Outcome{Status: StatusSkipped, Reason: ReasonSummary}
	if d := m.keepNotes(t, who, own, c.Newest, m.toKeep); d != nil && d.Block != "" {
		p.Outcome = outcomeOf(d, SourceLocal)
		p.Outcome.Reason = ReasonSummary
		p.insert(c.Insert(c.Newest, d.Block))
	}
}

// resume plans a request of an open turn after the client has replaced the history with a
// summary. It searches nothing. The first such request decides on a block with the session's
// notes, and the requests after it repeat the block.
func (m *Planner) resume(t *turn, who graphiti.Who, p *Plan) {
	p.Outcome = Outcome{Status: StatusEmpty, Reason: ReasonNothing}
	p.repeatNewest(t)
	source := SourceSticky
	if t.resumed == nil {
		source = SourceLocal
		t.resumed = m.keepNotes(t, who, turnKeyOf(who.Session+resumedKey, t.resumedFrom), t.resumedAt, m.toResume)
	}
	if d := t.resumed; d != nil && d.Block != "" {
		p.Outcome = outcomeOf(d, source)
	}
}

// resumedKey is part of the key of the block before a summary that replaces the history.
const resumedKey = "\x00resumed"

// keepNotes stores a decision with a block of notes before message i, and returns it; nil if
// the request may have none.
func (m *Planner) keepNotes(t *turn, who graphiti.Who, key TurnKey, i int, notes func(*turn, graphiti.Who) (block string, facts int)) *Decision {
	if !t.mode.Recall || t.mode.Nobody || !t.o.Compaction || t.err != nil || i < 0 || !t.c.Insertable(i) {
		return nil
	}
	t.own = key
	d := Decision{Ingest: t.mode.Ingest}
	d.Block, d.Facts = notes(t, who)
	t.read(who)
	m.keep(t, d, Outcome{})
	return t.decision
}

const (
	// comparedMax limits the conversation text, in bytes, that is compared with results.
	comparedMax = 1 << 20

	minWritten = 64 // bytes of a line from which it is compared with answers
)

// toKeep returns the block for a summary request and its number of facts: the session's notes.
func (m *Planner) toKeep(t *turn, who graphiti.Who) (block string, facts int) {
	visible, room := statementsIn(t.blocks()), t.noteRoom()
	session := m.sessionNotes(t, who)
	notes := session.lines(room)
	if len(notes) > 0 && said(t.c)(notes[0]) { // the last question
		notes = notes[1:]
	}
	return formatBlock(slices.DeleteFunc(notes, visible.has), 0, true)
}

// toResume returns the block for a request after a compaction and its number of facts: the
// session's notes that the conversation lacks.
func (m *Planner) toResume(t *turn, who graphiti.Who) (block string, facts int) {
	lines, room := m.resumed(t, who, nil), t.noteRoom()
	for i, l := range lines {
		if room -= utf8.RuneCountInString(l) + len("- \n"); room < 0 {
			lines = lines[:i]
			break
		}
	}
	return formatBlock(lines, 0, true)
}

// noteRoom returns the maximum number of characters of the lines in a block of notes.
func (t *turn) noteRoom() int {
	return min(t.o.MaxChars, roomIn(t.c.Model, t.o.Share, t.o.Window)) - utf8.RuneCountInString(blockOpen+blockFrame+blockClose)
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
	return strings.Trim(line[len(lineLabel(line)):], "“”")
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

// written returns a function that reports whether the model's answers or the client's summary
// contain a line's long statement. A person's question may contain the statement that answers it.
func written(c *dialect.Conversation) func(line string) bool {
	at := c.SummaryAt()
	isSaid := saidBy(c, func(i int) bool { return i == at || c.Messages[i].Role == dialect.RoleAssistant })
	return func(line string) bool { return len(line) >= minWritten && isSaid(line) }
}

// saidBy returns a function that reports whether some of the messages contain a line's statement.
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
