package proxy

import (
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// sessionOf is a session of a person, in a workspace that a header names or in
// none: others may use the same id.
type sessionOf struct {
	base    dialect.Fingerprint
	session string
}

// sessionNote is what is known of a session that no request says. It is
// remembered as long as there is room.
type sessionNote struct {
	place  dialect.Place // where it takes place
	placed bool          // that is known

	// What its turns have in common, by which what a client asks for itself beside
	// them is recognised.
	tools bool // they offer tools
	free  bool // they want an answer of no form

	// odd is the conversation up to the message that was taken for a chore. Where it
	// stands in a history, it was a turn: the session has other habits now.
	odd dialect.Fingerprint
}

func (s *decider) noteKey(of sessionOf) memo.Key {
	return memo.Key{Kind: memo.Sessions, Owner: memo.Owner(of.base), Name: s.memo.Name(of.session)}
}

// sessionNote is what is known of a session.
func (s *decider) sessionNote(of sessionOf) sessionNote {
	n, _ := s.memo.Get(s.noteKey(of)).(sessionNote)
	return n
}

// changeNote notes something of a session.
func (s *decider) changeNote(of sessionOf, change func(*sessionNote)) {
	s.memo.Update(s.noteKey(of), func(was any) (any, int) {
		n, _ := was.(sessionNote)
		change(&n)
		return n, len(n.place.Directory) + len(n.place.Repo)
	})
}

// noteTurn notes where a turn takes place, as it says: not every request of a
// client does. A title or a probe comes before the first turn, and says nothing or
// something else: it decides nothing for the others.
func (s *decider) noteTurn(of sessionOf, at *where, c *dialect.Conversation) {
	change := func(n *sessionNote) {
		if !at.seen || at.says {
			n.place, n.placed = at.place, true
		}
		n.tools, n.free = n.tools || c.Tools, n.free || !c.Format
	}
	was := s.sessionNote(of)
	now := was
	if change(&now); now != was {
		s.changeNote(of, change)
	}
}

// isChore reports whether a request repeats what was said in a session in order to
// ask for something beside it, whatever its words: it offers none of the tools that
// the session's turns offer, or wants an answer of a form that they do not want.
func (s *decider) isChore(of sessionOf, kind dialect.Kind, c *dialect.Conversation, chain []dialect.Fingerprint) bool {
	if kind != dialect.KindTurn || c.Answered() || !answeredBefore(c) {
		return false
	}
	h := s.sessionNote(of)
	if (c.Tools || !h.tools) && (!c.Format || !h.free) {
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

// answeredBefore reports whether the model has answered a person before the newest
// message of theirs.
func answeredBefore(c *dialect.Conversation) bool {
	for i := range c.Answers {
		if i < c.Last {
			return true
		}
	}
	return false
}

// opening counts the sessions of a person that began with the same words.
type opening struct {
	sessions int
	last     string
}

// template is the number of sessions after which identical first words count as a
// program's.
const template = 100

// isTemplate reports whether the words that a turn begins a session with are to the
// letter those of many others: then a program wrote them.
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
