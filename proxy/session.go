package proxy

import (
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// sessionOf identifies a session by its caller, the workspace that a header names, and
// its id. Other callers may use the same id.
type sessionOf struct {
	base    dialect.Fingerprint
	session string
}

// sessionNote is a note about the earlier requests of a session. It is dropped if the
// memo is full.
type sessionNote struct {
	place  dialect.Place
	placed bool // place is known

	// Common properties of the session's turns. A client's own request in the session (a
	// chore) differs in them.
	tools  bool   // turns offer tools
	free   bool   // turns do not ask for a structured answer
	prompt uint64 // hash of the system prompt of the newest turn with tools

	// odd is the conversation up to the message of the last chore. If a later history
	// contains it, it was a turn, and the session has new properties.
	odd dialect.Fingerprint
}

func (s *decider) noteKey(of sessionOf) memo.Key {
	return memo.Key{Kind: memo.Sessions, Owner: memo.Owner(of.base), Name: s.memo.Name(of.session)}
}

// sessionNote returns the note about a session; zero if there is none.
func (s *decider) sessionNote(of sessionOf) sessionNote {
	n, _ := s.memo.Get(s.noteKey(of)).(sessionNote)
	return n
}

// changeNote changes the note about a session.
func (s *decider) changeNote(of sessionOf, change func(*sessionNote)) {
	s.memo.Update(s.noteKey(of), func(was any) (any, int) {
		n, _ := was.(sessionNote)
		change(&n)
		return n, len(n.place.Directory) + len(n.place.Repo)
	})
}

// noteTurn notes the place that a turn states, because other requests of the session may
// state none. It is called only for turns: the request for a title, or a probe, may state
// no place, or another place.
func (s *decider) noteTurn(of sessionOf, at *where, c *dialect.Conversation) {
	change := func(n *sessionNote) {
		if !at.seen || at.says {
			n.place, n.placed = at.place, true
		}
		n.tools, n.free = n.tools || c.Tools, n.free || !c.Format
		if c.Tools {
			n.prompt = c.PromptHash()
		}
	}
	was := s.sessionNote(of)
	now := was
	if change(&now); now != was {
		s.changeNote(of, change)
	}
}

// isChore reports whether a request repeats a session's messages, but is no turn of it,
// such as a client's request for a title: it asks for a structured answer although the
// session's turns do not, or it offers no tools although they do, and has another system
// prompt or asks for a summary.
func (s *decider) isChore(of sessionOf, c *dialect.Conversation, chain []dialect.Fingerprint) bool {
	if c.Answered() || !answeredBefore(c) {
		return false
	}
	h := s.sessionNote(of)
	without := !c.Tools && h.tools && (c.PromptHash() != h.prompt || c.Beside() == dialect.KindSummary)
	if !without && (!c.Format || !h.free) {
		return false
	}
	for i := range c.Last {
		if c.Messages[i].Person && chain[i] == h.odd {
			s.changeNote(of, func(n *sessionNote) { n.tools, n.free, n.odd = c.Tools, !c.Format, dialect.Fingerprint{} })
			return false
		}
	}
	s.changeNote(of, func(n *sessionNote) { n.odd = chain[c.Last] })
	return true
}

// answeredBefore reports whether the model has answered before the person's newest
// message.
func answeredBefore(c *dialect.Conversation) bool {
	for i := range c.Answers {
		if i < c.Last {
			return true
		}
	}
	return false
}

// opening counts the sessions of a person with the same first message.
type opening struct {
	sessions int
	last     string
}

// template is the number of sessions after which an identical first message counts as a
// program's.
const template = 100

// isTemplate reports whether a turn begins a session with exactly the same message as
// many other sessions: a program wrote such a message.
func (s *decider) isTemplate(person dialect.Fingerprint, session string, c *dialect.Conversation) bool {
	if answeredBefore(c) {
		return false
	}
	var o opening
	words := person.Link(dialect.RoleUser, c.Text(c.Last))
	s.memo.Update(memo.Key{Kind: memo.Sessions, Owner: memo.Owner(words)}, func(was any) (any, int) {
		if o, _ = was.(opening); o.last != session && !c.Answered() {
			o = opening{o.sessions + 1, session}
		}
		return o, len(o.last)
	})
	return o.sessions > template
}
