package proxy

import (
	"bytes"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// openFor is the longest time that a tool call counts as open.
const openFor = 10 * time.Minute

// callText is a string in the arguments of a tool call, or a final answer. A conversation
// whose first message equals it, and that starts while the call is open or soon after the
// answer, is a subagent's: the model wrote its task.
type callText struct {
	from, to time.Time // start of the call's request, and end of the open call
	place    dialect.Place
	child    dialect.Fingerprint // the conversation with this task; zero before the first
}

// subagentNote marks the conversations of a subagent.
type subagentNote struct{ is bool }

// firstMessage identifies the first message of a conversation.
type firstMessage struct {
	texts []memo.Key          // of callTexts; empty after the first answer
	at    dialect.Fingerprint // of the conversation up to this message
}

// The names of entries whose owner is a fingerprint.
const (
	callTextName uint64 = iota + 1
	callsName
	subagentName
	quotablesName
	sentName
	openingName
)

func textKey(caller dialect.Fingerprint, text []byte) memo.Key {
	return keyOf(caller.Link(dialect.RoleUser, bytes.TrimSpace(text)), callTextName)
}
func callsKey(asked dialect.Fingerprint) memo.Key    { return keyOf(asked, callsName) }
func subagentKey(first dialect.Fingerprint) memo.Key { return keyOf(first, subagentName) }

func keyOf(f dialect.Fingerprint, name uint64) memo.Key {
	return memo.Key{Kind: memo.Sessions, Owner: memo.Owner(f), Name: name}
}

// openCalls stores the strings in the arguments of an answer's tool calls.
func (p *pendingTurn) openCalls(a *dialect.Answer) {
	var keys []memo.Key
	for _, text := range a.Calls.Texts() {
		keys = append(keys, p.wrote(text))
	}
	if len(keys) == 0 {
		return
	}
	asked := []dialect.Fingerprint{p.end}
	if a.ID != "" { // the next request may contain only this reference
		asked = append(asked, p.at.person.Reference(a.ID))
	}
	for _, f := range asked {
		p.s.memo.Update(callsKey(f), func(any) (any, int) { return keys, 32 * len(keys) })
	}
}

// wrote stores a text of the model, and returns its key.
func (p *pendingTurn) wrote(text string) memo.Key {
	key := textKey(p.at.person, []byte(text))
	p.s.memo.Update(key, func(any) (any, int) {
		return callText{from: p.turn.Said, to: time.Now().Add(openFor), place: p.at.place}, len(p.at.place.Directory)
	})
	return key
}

// wroteAnswer stores a final answer: some programs send it to another agent as a person's
// message. An echo of the person's message is theirs.
func (p *pendingTurn) wroteAnswer(text string) {
	if text = strings.TrimSpace(text); text != "" && text != strings.TrimSpace(p.turn.User) {
		p.wrote(text)
	}
}

// byModel reports whether the model recently wrote the person's newest message for the same
// caller.
func (s *decider) byModel(c *dialect.Conversation, at *where) bool {
	return s.memo.Get(textKey(at.person, c.Text(c.Last))) != nil
}

// closeCalls ends the newest tool calls of a conversation that continues.
func (s *decider) closeCalls(c *dialect.Conversation, chain []dialect.Fingerprint, at *where) {
	var asked []dialect.Fingerprint
	for i := len(c.Messages) - 1; i > 0; i-- {
		if c.Messages[i].Role == dialect.RoleAssistant {
			asked = append(asked, chain[i-1])
			break
		}
	}
	if previous := c.Field(dialect.FieldPreviousResponseID); len(previous) > 0 {
		asked = append(asked, at.person.Link(dialect.RoleOther, previous))
	}
	for _, f := range asked {
		keys, _ := s.memo.Get(callsKey(f)).([]memo.Key)
		if keys == nil {
			continue
		}
		s.memo.Update(callsKey(f), func(any) (any, int) { return nil, 0 })
		for _, key := range keys {
			s.memo.Update(key, func(was any) (any, int) {
				t, _ := was.(callText)
				if now := time.Now(); now.Before(t.to) {
					t.to = now
				}
				return t, len(t.place.Directory)
			})
		}
	}
}

// firstOf returns the first message of a conversation.
func firstOf(c *dialect.Conversation, chain []dialect.Fingerprint, at *where) (m firstMessage) {
	first := 0
	for first < c.Last && !c.Messages[first].Person {
		first++
	}
	m.at = chain[first]
	if !c.Opens() || len(c.Field(dialect.FieldPreviousResponseID)) > 0 {
		return m
	}
	for text := range c.Texts(c.Last) {
		for _, text := range [][]byte{text, dialect.Labelled(text)} {
			if len(text) > 0 {
				m.texts = append(m.texts, textKey(at.person, text))
			}
		}
	}
	return m
}

// noteSubagent notes and reports whether the first message of a conversation is the task of a
// subagent. A client's own request about an open call counts too: it names an argument of
// the call after a label.
func (s *decider) noteSubagent(c *dialect.Conversation, chain []dialect.Fingerprint, at *where) bool {
	s.closeCalls(c, chain, at)
	m := firstOf(c, chain, at)
	known, _ := s.memo.Get(subagentKey(m.at)).(subagentNote)
	if len(m.texts) == 0 {
		return known.is
	}
	is := s.isTask(&m, at.place, time.Now())
	if is != known.is {
		s.memo.Update(subagentKey(m.at), func(any) (any, int) { return subagentNote{is}, 0 })
	}
	return is
}

// recheck calls isTask again when the answer has ended: a subagent's request may arrive
// before the proxy has read the answer with the call. So may a request about a turn before
// the turn.
func (p *pendingTurn) recheck() {
	if p.hasTwin() {
		p.turn.Targets, p.recall, p.late = nil, false, nil
	}
	if m := p.first; len(m.texts) > 0 && p.s.isTask(&m, p.at.place, p.turn.Said) {
		p.s.memo.Update(subagentKey(m.at), func(any) (any, int) { return subagentNote{true}, 0 })
		p.turn.Targets, p.recall, p.late = nil, false, nil
	}
}

// isTask reports whether a first message, at the time of its arrival, equals a string of
// an open call of the same caller in the same place. Each string starts one conversation,
// otherwise the requests of a loop would count as tasks.
func (s *decider) isTask(m *firstMessage, place dialect.Place, arrived time.Time) (is bool) {
	for _, key := range m.texts {
		if s.memo.Get(key) == nil {
			continue
		}
		s.memo.Update(key, func(was any) (any, int) {
			t, _ := was.(callText)
			elsewhere := t.place != place && t.place != (dialect.Place{}) && place != (dialect.Place{})
			isOpen := arrived.After(t.from) && arrived.Before(t.to)
			if is = isOpen && !elsewhere && (t.child == m.at || t.child == dialect.Fingerprint{}); is {
				t.child = m.at
			}
			return t, len(t.place.Directory)
		})
		if is {
			return true
		}
	}
	return false
}
