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
	from, to time.Time // when the call was asked for, and when it is taken for closed
	place    dialect.Place
	child    dialect.Fingerprint // the conversation that it opened; zero: none so far
}

// beginning is what a conversation opens with.
type beginning struct {
	texts []memo.Key
	at    dialect.Fingerprint // the conversation up to there
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
			return openText{from: p.turn.Said, to: time.Now().Add(openFor), place: p.at.place}, len(p.at.place.Directory)
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
		if keys == nil {
			continue
		}
		s.memo.Update(callsKey(f), func(any) (any, int) { return nil, 0 })
		for _, key := range keys {
			s.memo.Update(key, func(was any) (any, int) {
				o, _ := was.(openText)
				if now := time.Now(); now.Before(o.to) {
					o.to = now
				}
				return o, len(o.place.Directory)
			})
		}
	}
}

// beginningOf returns what a conversation opens with. known says that an answer or a
// reference came before.
func beginningOf(c *dialect.Conversation, chain []dialect.Fingerprint, at *where) (o beginning, known bool) {
	first := 0
	for first < c.Last && !c.Messages[first].Person {
		first++
	}
	o.at = chain[first]
	if !c.Opens() || len(c.Field(dialect.FieldPreviousResponseID)) > 0 {
		return o, true
	}
	for text := range c.Texts(c.Last) {
		if len(text) > 0 {
			o.texts = append(o.texts, textKey(at.person, text))
		}
	}
	return o, false
}

// fromModel reports whether a model wrote what a conversation opens with, as the task of
// a subagent: it equals a string in the arguments of a call of the same caller, in the
// same place, that is open. Each string opens one conversation.
func (s *decider) fromModel(c *dialect.Conversation, chain []dialect.Fingerprint, at *where) bool {
	s.closeCalls(c, chain, at)
	o, goesOn := beginningOf(c, chain, at)
	known, _ := s.memo.Get(childKey(o.at)).(child)
	if goesOn {
		return known.is
	}
	is := s.claims(&o, at.place, time.Now())
	if is != known.is {
		s.memo.Update(childKey(o.at), func(any) (any, int) { return child{is}, 0 })
	}
	return is
}

// recheck asks again whether a model wrote what the conversation opens with: its request
// may have come before the answer with the call was read to its end.
func (p *pendingTurn) recheck() {
	if o := p.began; len(o.texts) > 0 && p.s.claims(&o, p.at.place, p.turn.Said) {
		p.s.memo.Update(childKey(o.at), func(any) (any, int) { return child{true}, 0 })
		p.turn.Targets, p.recall, p.late = nil, false, nil
	}
}

// claims reports whether an open text has opened this conversation, or opens it now. Its
// request came at a time.
func (s *decider) claims(of *beginning, place dialect.Place, came time.Time) (is bool) {
	for _, key := range of.texts {
		if s.memo.Get(key) == nil {
			continue
		}
		s.memo.Update(key, func(was any) (any, int) {
			o, _ := was.(openText)
			elsewhere := o.place != place && o.place != (dialect.Place{}) && place != (dialect.Place{})
			isOpen := came.After(o.from) && came.Before(o.to) && !elsewhere
			if is = isOpen && (o.child == of.at || o.child == dialect.Fingerprint{}); is {
				o.child = of.at
			}
			return o, len(o.place.Directory)
		})
		if is {
			return true
		}
	}
	return false
}
