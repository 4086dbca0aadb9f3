package proxy

import (
	"bytes"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

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
