package inject

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// summary plans a request in which the client summarizes its history. Search results are
// inserted before the client's instruction, which later requests omit, so blocks in the
// history stay unchanged. The decision has a key of its own.
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
	d, o := m.recall(t, who, gist(t.c))
	if o.Status == StatusRecalled || o.Status == StatusEmpty { // after an error or timeout, a retry may find more
		d.Block, d.Facts = m.unseen(t, who, d.Block)
		d.Pieces = "" // they describe other lines, and no command reads them
		o = outcomeOf(&d, o.Source)
		d.Ingest = t.mode.Ingest
		o = m.keep(t, d, o)
	}
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

// unseen returns the block for a summary request and its number of facts: first the
// session's recorded lines, then the search results. It omits lines in the text that the
// client summarizes.
func (m *Planner) unseen(t *turn, who graphiti.Who, found string) (block string, facts int) {
	var list []string
	if s := m.session(t.sessionID(who)).shown; s.generation == t.mode.Generation {
		list = slices.Clone(s.lines)
	}
	list = slices.AppendSeq(list, linesOf(found))
	visible, said := linesIn(t.blocks()), allSaid(t.c)
	room, count := min(t.o.MaxChars, roomIn(t.c.Model, t.o.Share, t.o.Window))-utf8.RuneCountInString(blockOpen+blockFrame+blockClose), 0
	var kept []string
	for _, l := range list {
		size := utf8.RuneCountInString(l) + len("- \n")
		if _, shows := visible[l]; shows || slices.Contains(kept, l) || strings.Contains(said, " "+normal(statement(l))+" ") || size > room || count == t.o.MaxFacts {
			continue
		}
		kept = append(kept, l)
		room -= size
		count++
	}
	return formatBlock(kept, 0)
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

// statement returns a line without its label and its age.
func statement(line string) string {
	return line[len(labelOf(line)) : len(line)-len(ageOf(line))]
}

// labelOf returns the label at the start of a line, or "".
func labelOf(line string) string {
	for _, label := range []string{"somebody said: ", resumes, openTask, filesTouched, errorMet} {
		if strings.HasPrefix(line, label) {
			return label
		}
	}
	return ""
}

// allSaid returns the normalized messages of a conversation, newest first, between spaces.
func allSaid(c *dialect.Conversation) string {
	var b strings.Builder
	b.WriteByte(' ')
	for i := len(c.Messages) - 1; i >= 0 && b.Len() < comparedMax; i-- {
		if c.Messages[i].Role == dialect.RoleOther {
			continue
		}
		text := c.Text(i)
		b.WriteString(normal(string(text[:min(len(text), comparedMax)])))
		b.WriteByte(' ')
	}
	return b.String()
}

// gist returns the query for a whole conversation: the person's latest words. If one
// message contains an unlabeled transcript, it returns the end of that message.
func gist(c *dialect.Conversation) string {
	var parts [][]byte
	room := maxQuery
	if t, _ := c.Transcript(); len(t.Said) > 0 {
		for i := len(t.Said) - 1; i >= 0 && room > 0; i-- {
			text := cutWord(t.Said[i], room)
			room -= len(text)
			parts = append(parts, text)
		}
		return string(bytes.Join(parts, []byte("\n")))
	}
	for i := c.Last; i >= 0 && room > 0; i-- {
		if !c.Messages[i].Person || i == c.Newest && c.Last > 0 {
			continue
		}
		text := c.Text(i)
		if len(text) > room {
			if i == c.Newest {
				text = fromWord(text, room)
			} else {
				text = cutWord(text, room)
			}
		}
		room -= len(text)
		parts = append(parts, text)
	}
	return string(bytes.Join(parts, []byte("\n")))
}
