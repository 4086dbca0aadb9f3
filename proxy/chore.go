package proxy

import (
	"bytes"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
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

const (
	quotableTurns = 16
	quotableFor   = 2 * time.Hour
	quotedRunes   = 24 // programs shorten the messages that they quote
	minQuoted     = 10 // runes
	maxQuoting    = 64 << 10
	maxTitle      = 80  // bytes
	maxTitled     = 512 // bytes of each message
)

// quotable is how a turn begins: by it a request about the turn is recognized.
type quotable struct {
	said, answered []byte // normalized
	tools          bool   // it offered tools
	prompt         uint64 // hash of its system prompt
	at             time.Time
}

// normalized returns the letters and digits of a text, of at most so many runes, in lower
// case. It drops the escapes of JSON in a text.
func normalized(text []byte, most int) []byte {
	out := make([]byte, 0, min(len(text), most*utf8.UTFMax))
	for n := 0; n < most && len(text) > 0; {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		if r == '\\' && len(text) > 0 && bytes.IndexByte([]byte("nrt"), text[0]) >= 0 {
			text = text[1:]
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out = utf8.AppendRune(out, unicode.ToLower(r))
			n++
		}
	}
	return out
}

// quotable stores how the turn begins, for requests about it.
func (p *pendingTurn) quotable() {
	said, answered := normalized([]byte(p.turn.User), quotedRunes), normalized([]byte(p.turn.Assistant), quotedRunes)
	if utf8.RuneCount(said) < minQuoted || utf8.RuneCount(answered) < minQuoted {
		return
	}
	p.s.memo.Update(sessionsKey(p.at.person, "quotable"), func(was any) (any, int) {
		all, _ := was.([]quotable)
		all = append(all[max(0, len(all)-quotableTurns+1):len(all):len(all)], quotable{said, answered, p.tools, p.prompt, time.Now()})
		return all, 2 * len(all) * quotedRunes * utf8.UTFMax
	})
}

// quoted returns the turn of the caller, if there is one, whose message and answer a
// request quotes.
func (s *decider) quoted(c *dialect.Conversation, at *where) *quotable {
	all, _ := s.memo.Get(sessionsKey(at.person, "quotable")).([]quotable)
	if len(all) == 0 {
		return nil
	}
	raw := c.Raw(c.Last)
	text := normalized(raw[:min(len(raw), maxQuoting)], maxQuoting)
	for i := len(all) - 1; i >= 0; i-- {
		q := &all[i]
		if time.Since(q.at) < quotableFor && bytes.Contains(text, q.said) && bytes.Contains(text, q.answered) {
			return q
		}
	}
	return nil
}

// aboutTurn returns KindProbe for a request about an earlier turn, such as for its title:
// it quotes the turn, and lacks its tools or has another system prompt. A quotation without
// these differences leaves a doubt, as does a request that continues a session without its
// tools.
func (s *decider) aboutTurn(of sessionOf, c *dialect.Conversation, at *where) (kind dialect.Kind, doubt bool) {
	if c.Tools || c.Answered() {
		return dialect.KindTurn, false
	}
	if answeredBefore(c) {
		return dialect.KindTurn, s.sessionNote(of).tools
	}
	switch q := s.quoted(c, at); {
	case q == nil:
		return dialect.KindTurn, false
	case q.tools || q.prompt != c.PromptHash():
		return dialect.KindProbe, false
	}
	return dialect.KindTurn, true
}

// lastTurn returns the end of the turn before the newest, if the request offers no tools:
// a client may ask for a title of it.
func lastTurn(c *dialect.Conversation) string {
	if c.Tools || !answeredBefore(c) {
		return ""
	}
	var b strings.Builder
	for i := c.Last - 1; i >= 0; i-- {
		m := &c.Messages[i]
		if m.Person || m.Role == dialect.RoleAssistant {
			text := c.Text(i)
			b.Write(text[:min(len(text), maxTitled)])
			b.WriteByte('\n')
		}
		if m.Person {
			break
		}
	}
	return b.String()
}

// isTitle reports whether an answer may be the title of a turn: a short line that is no
// sentence, of words that the turn has. A request for a title is longer than the title: a
// short question with a short answer is a person's.
func isTitle(turn, asks, answer string) bool {
	answer = strings.TrimSpace(answer)
	if turn == "" || len(asks) <= maxTitle || len(answer) > maxTitle || strings.ContainsAny(answer, "\n.!?。！？") {
		return false
	}
	return words.Holds(turn, answer)
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
