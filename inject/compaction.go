package inject

import (
	"bytes"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// summary plans for a request in which a client has its history summarised.
// What is known goes before the client's instruction, which no later request
// will hold: the blocks of the history itself stay as they are. The answer is
// kept as a text of its own kind.
func (m *Memory) summary(t *turn, who graphiti.Who, mode Mode, p Plan) Plan {
	p.Outcome = Outcome{Status: StatusSkipped, Reason: ReasonSummary}
	// The instruction may be no person's message, and then the conversation's
	// fingerprint is that of the turn before.
	t.own = TurnKey(who.Session+"\x00summary", dialect.Fingerprint(t.keys[len(t.keys)-1]))
	p.Turn = t.own.String()
	if mode.Ingest {
		p.Write = m.opts().Writes(who)
	}
	if last := t.earlier[len(t.earlier)-1]; t.c.Newest > t.c.Last && last != nil && last.Block != "" {
		p.Inserts = append(p.Inserts, t.c.Insert(t.c.Last, last.Block)) // the last turn is an earlier one
	}
	if !mode.Recall || mode.Nobody || !m.opts().Compaction || t.err != nil || !t.c.Insertable(t.c.Newest) {
		return p
	}
	d, o := m.recall(t, who, gist(t.c))
	if o.Status == StatusRecalled || o.Status == StatusEmpty { // else another attempt may know more
		d.Ingest = mode.Ingest
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

// gist is what to ask the memory about a conversation as a whole: what the
// person said last, and in a request that holds it all in one message its end.
func gist(c *dialect.Conversation) string {
	var parts [][]byte
	room := maxQuery
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
