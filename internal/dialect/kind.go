package dialect

import (
	"bytes"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/tidwall/gjson"
)

// kind determines the purpose of the request from its words.
func (c *Conversation) kind() Kind {
	for i := len(c.Messages) - 1; i >= 0 && c.Newest < 0; i-- {
		if m := &c.Messages[i]; m.Role == RoleUser && (m.Person || !m.Results) {
			c.Newest = i
		}
	}
	at, end := c.asking(), len(c.Messages)-1
	var parts [4]messagePart
	var prompts [maxParts][]byte
	kind, agent, rule := kindOf(c.prompts(prompts[:0]), c.parts(at, parts[:0]), c.Tools)
	c.agent, c.Rule = agent, rule
	if kind != KindTurn {
		return kind
	}
	switch {
	case at < end && c.endsRound() && c.sumsUpRound(prompts[:0], parts[:0]):
		c.Newest, c.Guessed = end, true
		return KindSummary
	case !c.Tools && c.Format && c.onlyTitle():
		return KindTitle
	case at >= 0 && c.AsksForSummary(at):
		c.Newest, c.Guessed = at, true
		return KindSummary
	case at > c.Last && at == end && c.Last >= 0:
		return KindMachine
	}
	return KindTurn
}

// parts appends the parts of message i in the form that the rules read.
func (c *Conversation) parts(i int, said []messagePart) []messagePart {
	if i < 0 {
		return said
	}
	m := &c.Messages[i]
	for n := m.from; n < m.to; n++ {
		if n == m.from+maxParts && m.to-n > maxParts {
			n = m.to - maxParts // a client's own text is the first or the last
		}
		said = append(said, c.partAt(c.spans[n]))
	}
	return said
}

// endsRound reports whether a client's message ends a tool round: the results may be in it, or
// before it.
func (c *Conversation) endsRound() bool {
	i := len(c.Messages) - 1
	return i > c.Last && c.Messages[i].Role == RoleUser && c.Answered()
}

// sumsUpRound reports whether the message that ends a tool round asks for a summary.
func (c *Conversation) sumsUpRound(prompts [][]byte, parts []messagePart) bool {
	kind, _, _ := kindOf(c.prompts(prompts), c.parts(len(c.Messages)-1, parts), c.Tools)
	return kind == KindSummary || slices.ContainsFunc(c.instructions(), func(s Span) bool { return asksToSumUp(c.startOf(s, instructionsStart)) })
}

// Instructed reports whether a tool round ends with a client's text that may be a request of
// the client.
func (c *Conversation) Instructed() bool { return c.endsRound() && len(c.instructions()) > 0 }

// instructions returns the texts of the last message that are long enough for instructions, and
// not in an element.
func (c *Conversation) instructions() (texts []Span) {
	m := &c.Messages[len(c.Messages)-1]
	for _, s := range c.spans[m.from:m.to] {
		if s.End-s.Start >= minInstructions && tagAt(trim(c.startOf(s, startBytes))) == nil {
			texts = append(texts, s)
		}
	}
	return texts
}

// Resumes reports whether the client has replaced the history with a summary, and no person has
// spoken since: an open turn continues.
func (c *Conversation) Resumes() bool {
	return (c.Kind == KindTurn || c.Kind == KindMachine) && c.Replaced() > c.Last
}

// schemas are the paths of an answer's schema in the formats of all APIs.
var schemas = []string{"json_schema.schema", "format.schema", "responseSchema", "responseJsonSchema"}

// onlyTitle reports whether the answer is to hold a title and nothing else.
func (c *Conversation) onlyTitle() bool {
	format := c.Field(fieldFormat)
	return slices.ContainsFunc(schemas, func(path string) bool {
		wanted := gjson.GetBytes(format, path+".properties").Map()
		return len(wanted) == 1 && wanted["title"].Exists()
	})
}

// asking returns the index of the message that the request is about: the newest user
// message, or the one with a person's words if there are several between two answers.
// Clients put messages of their own after it, and after the results of tools.
func (c *Conversation) asking() int {
	if c.Newest < 0 || c.Messages[c.Newest].Person {
		return c.Newest
	}
	for i := c.Newest; i >= 0 && !c.isSummary(i); i-- { // everything before a summary is earlier history
		m := &c.Messages[i]
		if m.Person {
			return i
		}
		if !c.unanswered(i) {
			if m.Role != RoleAssistant && c.Last >= 0 && c.clients(c.Newest) {
				return c.Last // the newest message belongs to the tool round
			}
			break
		}
	}
	return c.Newest
}

// clients reports whether a client wrote all of message i.
func (c *Conversation) clients(i int) bool { return c.Messages[i].cleaned }

// AsksForSummary reports whether message i asks for a summary of the conversation, although
// it matches no rule for a client.
func (c *Conversation) AsksForSummary(i int) bool {
	m := &c.Messages[i]
	return i > c.answer && slices.ContainsFunc(c.spans[m.from:m.to], func(s Span) bool {
		return s.End-s.Start >= minInstructions && c.sumsUp(s)
	})
}

func (c *Conversation) sumsUp(s Span) bool {
	return asksToSumUp(c.startOf(s, instructionsStart)) || c.holdsSummary(s)
}

// Beside returns the kind of a request that the client makes outside of the conversation,
// though its words may be a person's.
func (c *Conversation) Beside() Kind {
	m := &c.Messages[c.Newest]
	if slices.ContainsFunc(c.spans[m.from:m.to], c.sumsUp) || slices.ContainsFunc(c.prompts(nil), asksToSumUp) {
		return KindSummary
	}
	return KindProbe
}

// prompts appends the beginnings of the parts of the system prompt.
func (c *Conversation) prompts(system [][]byte) [][]byte {
	for i := c.prompt.from; i < min(c.prompt.to, c.prompt.from+maxParts); i++ {
		system = append(system, trim(c.startOf(c.spans[i], startBytes)))
	}
	if len(c.Messages) > 0 && len(system) == 0 {
		if m := &c.Messages[0]; m.Role == RoleOther && m.from < m.to {
			system = append(system, trim(c.start(m)))
		}
	}
	return system
}

// PromptHash returns a hash of the beginnings of the system prompt's parts.
func (c *Conversation) PromptHash() uint64 {
	var buf [maxParts][]byte
	var d xxhash.Digest
	d.Reset()
	for _, p := range c.prompts(buf[:0]) {
		_, _ = d.Write(p) // never fails
	}
	return d.Sum64()
}

// Instructions returns the text of the system prompt.
func (c *Conversation) Instructions() []byte {
	text := c.joined(&c.prompt)
	for i := range c.Messages {
		if m := &c.Messages[i]; m.System || i == 0 && m.Role == RoleOther {
			text = slices.Concat(text, []byte{'\n'}, c.joined(m))
		}
	}
	return text
}

// Prompted returns the id that follows a mark in the request's first prompt.
func (c *Conversation) Prompted(mark string) string {
	m := &c.prompt
	if m.from == m.to && len(c.Messages) > 0 && c.Messages[0].System {
		m = &c.Messages[0]
	}
	return idBehind(c.joined(m), mark)
}

// Telling is the minimum length, in bytes, of an answer that identifies its conversation on
// its own.
const Telling = 40

// Transcript returns the conversation in the text of the newest user message, if that
// message ends the request. own is true if it is this same conversation, as far as the
// request shows it.
func (c *Conversation) Transcript() (t Transcript, own bool) {
	if c.Newest < 0 || c.Newest != len(c.Messages)-1 {
		return t, false
	}
	m := &c.Messages[c.Newest]
	if !slices.ContainsFunc(c.spans[m.from:m.to], func(s Span) bool { return mayBeTranscript(c.body[s.Start:s.End]) }) {
		return t, false
	}
	t = transcriptIn(c.prompts(nil), c.joined(m))
	for i := 0; i < c.Newest && !own && len(t.Answer) > 0; i++ {
		if c.Messages[i].Role == RoleAssistant {
			said := c.Text(i)
			own = len(said) >= Telling && slices.ContainsFunc(t.Answer, func(a []byte) bool { return bytes.Equal(a, said) })
		}
	}
	return t, own
}

// maxAnswers bounds the texts in the search for the session of a transcript.
const maxAnswers = 16

// AnswerFingerprints returns the fingerprints of a transcript's answers to a person, newest
// first, and of the summaries with which clients have replaced history before the first
// message of a person.
func (c *Conversation) AnswerFingerprints(t *Transcript, person Fingerprint) (found [][16]byte) {
	add := func(text []byte) {
		if len(text) >= Telling && len(found) < maxAnswers {
			found = append(found, person.OfAnswer(text))
		}
	}
	for i := len(t.Answer) - 1; i >= 0; i-- {
		add(t.Answer[i])
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Person {
			break
		}
		if m.Role == RoleUser && m.cleaned {
			for _, s := range c.spans[m.from:m.to] {
				add([]byte(SummaryIn(string(appendText(nil, c.body[s.Start:s.End])))))
			}
		}
	}
	return found
}

// asked reports whether message i, in the history, is a client's request for a chore and
// therefore not a person's.
func (c *Conversation) asked(i int) bool {
	m := &c.Messages[i]
	for _, s := range c.spans[m.from:min(m.to, m.from+maxParts)] {
		raw := trimRaw(c.body[s.Start:s.End])
		if len(raw) > 0 && asking[raw[0]] != nil && asksChore(c.partAt(s)) {
			return true
		}
	}
	return false
}

// partAt returns a part of a message in the form that the rules read.
func (c *Conversation) partAt(s Span) messagePart {
	return messagePart{Start: trim(c.startOf(s, startBytes)), Raw: c.body[s.Start:s.End], Decode: textOf}
}

func textOf(raw []byte) []byte { return appendText(nil, raw) }

// start returns the beginning of a message's text.
func (c *Conversation) start(m *Message) []byte {
	if m.from == m.to {
		return nil
	}
	return c.startOf(c.spans[m.from], startBytes)
}

// maxParts bounds the parts that the rules read of a prompt, and of either end of a
// message.
const maxParts = 8

// startOf returns the beginning of a text, from its first most raw bytes.
func (c *Conversation) startOf(s Span, most int) []byte {
	raw := c.body[s.Start:s.End]
	if !s.Escaped {
		return raw[:min(len(raw), most)]
	}
	if len(raw) > most {
		raw = raw[:most]
		// Do not cut an escape in two.
		if i := bytes.LastIndexByte(raw, '\\'); i >= 0 && i > most-12 {
			raw = raw[:i-backslashes(raw[:i])]
		}
	}
	return appendText(nil, raw)
}

// maxID bounds an id, in bytes.
const maxID = 64

// idBehind returns the id that follows a mark in a text. It returns "" if there is none, or
// if there are different ones: a quoted file may hold one.
func idBehind(text []byte, mark string) (id string) {
	for {
		i := bytes.Index(text, []byte(mark))
		if i < 0 {
			return id
		}
		text = text[i+len(mark):]
		n := 0
		for n < len(text) && n <= maxID && isIDByte(text[n]) {
			n++
		}
		switch found := string(text[:n]); {
		case n == 0 || n > maxID:
		case id != "" && id != found:
			return ""
		default:
			id = found
		}
	}
}

func isIDByte(c byte) bool {
	return c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
