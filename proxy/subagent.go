package proxy

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// openFor is how long the calls of an answer stay open, unless the conversation goes on
// before.
const openFor = 10 * time.Minute

// openText is a string in the arguments of a tool call that has no result yet. A
// conversation that opens with it is a subagent's: a model wrote the task.
type openText struct {
	until time.Time
	place dialect.Place
	child dialect.Fingerprint // the conversation that it opened; zero: none so far
}

// child notes that a subagent speaks in the conversations that begin so.
type child struct{ is bool }

// Keys of the memo, below the fingerprint of a caller or of a conversation.
func textKey(caller dialect.Fingerprint, text []byte) memo.Key {
	return noteOf(caller.Link(dialect.RoleUser, text), "a call's text")
}
func callsKey(asked dialect.Fingerprint) memo.Key   { return noteOf(asked, "calls") }
func childKey(opening dialect.Fingerprint) memo.Key { return noteOf(opening, "a subagent's") }

func noteOf(f dialect.Fingerprint, what string) memo.Key {
	return memo.Key{Kind: memo.Sessions, Owner: memo.Owner(f.Link(dialect.RoleOther, []byte(what)))}
}

// open notes the strings in the arguments of the tool calls that an answer makes.
func (p *pendingTurn) open(a *dialect.Answer) {
	var keys []memo.Key
	for _, text := range a.Calls.Texts() {
		key := textKey(p.at.person, []byte(text))
		keys = append(keys, key)
		p.s.memo.Update(key, func(any) (any, int) {
			return openText{until: time.Now().Add(openFor), place: p.at.place}, len(p.at.place.Directory)
		})
	}
	if len(keys) == 0 {
		return
	}
	asked := []dialect.Fingerprint{p.end}
	if a.ID != "" { // the next request may say no more than that
		asked = append(asked, p.at.person.Reference(a.ID))
	}
	for _, f := range asked {
		p.s.memo.Update(callsKey(f), func(any) (any, int) { return keys, 32 * len(keys) })
	}
}

// closeCalls notes that a conversation goes on: the newest calls have their results.
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
		for _, key := range append(keys, callsKey(f)) {
			if s.memo.Get(key) != nil {
				s.memo.Update(key, func(any) (any, int) { return nil, 0 })
			}
		}
	}
}

// fromModel reports whether a model wrote what a conversation opens with, as the task of
// a subagent: it equals a string in the arguments of a call of the same caller, in the
// same place, that is open. Each string opens one conversation.
func (s *decider) fromModel(c *dialect.Conversation, chain []dialect.Fingerprint, at *where) bool {
	s.closeCalls(c, chain, at)
	first := 0
	for first < c.Last && !c.Messages[first].Person {
		first++
	}
	opening := chain[first]
	known, _ := s.memo.Get(childKey(opening)).(child)
	if !c.Opens() || len(c.Field(dialect.FieldPreviousResponseID)) > 0 {
		return known.is
	}
	is := false
	for text := range c.Texts(c.Last) {
		if is = len(text) > 0 && s.claims(textKey(at.person, text), opening, at.place); is {
			break
		}
	}
	if is != known.is {
		s.memo.Update(childKey(opening), func(any) (any, int) { return child{is}, 0 })
	}
	return is
}

// claims reports whether an open text opened this conversation, or opens it now.
func (s *decider) claims(key memo.Key, opening dialect.Fingerprint, place dialect.Place) (is bool) {
	if s.memo.Get(key) == nil {
		return false
	}
	s.memo.Update(key, func(was any) (any, int) {
		o, ok := was.(openText)
		if !ok {
			return was, 0
		}
		elsewhere := o.place != place && o.place != (dialect.Place{}) && place != (dialect.Place{})
		if is = time.Now().Before(o.until) && !elsewhere && (o.child == opening || o.child == dialect.Fingerprint{}); is {
			o.child = opening
		}
		return o, len(o.place.Directory)
	})
	return is
}
