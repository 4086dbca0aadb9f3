package proxy

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// habits are what the turns of a session have in common, by which what a client
// asks for itself beside them is told.
type habits struct {
	tools bool // they offer tools
	free  bool // they want an answer of no form

	// odd is the conversation up to the message that was taken for a chore. Where it
	// stands in a history, it was a turn: the session has other habits now.
	odd dialect.Fingerprint
}

// sessions remembers what is known of the sessions of the moment that no request
// says. It is safe for concurrent use.
type sessions struct {
	habits *lru.Cache[sessionOf, habits]
	first  *lru.Cache[dialect.Fingerprint, opening] // of sessions, by their first words
}

// opening counts the sessions of one person that began with the same words.
type opening struct {
	sessions int
	last     string
}

const (
	maxHabits   = 1 << 14
	maxOpenings = 1 << 13

	// template is in how many sessions the same first words are nobody's.
	template = 100
)

func newSessions() *sessions {
	h, _ := lru.New[sessionOf, habits](maxHabits) // the sizes are positive
	f, _ := lru.New[dialect.Fingerprint, opening](maxOpenings)
	return &sessions{h, f}
}

// isChore reports whether a request repeats what was said in a session in order to
// ask for something beside it, whatever its words: it offers none of the tools that
// the session's turns offer, or wants an answer of a form that they do not want.
func (s *sessions) isChore(of sessionOf, kind dialect.Kind, c *dialect.Conversation, chain []dialect.Fingerprint) bool {
	if kind != dialect.KindTurn || c.Answered() || !answeredBefore(c) {
		return false
	}
	h, ok := s.habits.Get(of)
	if !ok || (c.Tools || !h.tools) && (!c.Format || !h.free) {
		return false
	}
	for i := range c.Last {
		if c.Messages[i].Person && chain[i] == h.odd {
			s.habits.Add(of, habits{tools: c.Tools, free: !c.Format})
			return false
		}
	}
	h.odd = chain[c.Last]
	s.habits.Add(of, h)
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

// turn notes a turn of a session.
func (s *sessions) turn(of sessionOf, c *dialect.Conversation) {
	h, _ := s.habits.Get(of)
	if now := (habits{h.tools || c.Tools, h.free || !c.Format, h.odd}); now != h {
		s.habits.Add(of, now)
	}
}

// isTemplate reports whether the words that a turn begins a session with are to the letter
// those of many others: then a program wrote them.
func (s *sessions) isTemplate(person dialect.Fingerprint, session string, c *dialect.Conversation) bool {
	if answeredBefore(c) {
		return false
	}
	words := person.Link(dialect.RoleUser, c.Text(c.Last))
	o, _ := s.first.Get(words)
	if o.last != session && !c.Answered() {
		o = opening{o.sessions + 1, session}
		s.first.Add(words, o)
	}
	return o.sessions > template
}
