package proxy

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

const (
	quotableTurns = 16
	quotableFor   = 2 * time.Hour
	twinFor       = time.Minute
	quotedRunes   = 24  // programs shorten the messages that they quote
	minQuoted     = 10  // runes
	maxTwin       = 512 // runes
	maxQuoting    = 64 << 10
	maxTitle      = 80  // bytes
	maxTitled     = 512 // bytes of each message
)

// quotable is how a recent turn of a caller begins: by it a request about the turn is
// recognized.
type quotable struct {
	said, answered []byte // normalized; answered is empty before the end of the answer
	twin           []byte // more of the message, if the turn opens its conversation without tools
	tools          bool   // it offered tools
	prompt         uint64 // hash of its system prompt
	at             time.Time
	stored         sentTurn // zero if the turn is not stored
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

func quotablesKey(caller dialect.Fingerprint) memo.Key { return sessionsKey(caller, "quotable") }

// quotables returns the recent turns of a caller.
func (s *decider) quotables(caller dialect.Fingerprint) []quotable {
	all, _ := s.memo.Get(quotablesKey(caller)).([]quotable)
	return all
}

// addQuotable stores how a turn begins, or replaces what is stored of the same turn.
func (s *decider) addQuotable(caller dialect.Fingerprint, q quotable) {
	s.memo.Update(quotablesKey(caller), func(was any) (any, int) {
		all, _ := was.([]quotable)
		all = slices.DeleteFunc(slices.Clone(all), func(o quotable) bool {
			return len(o.answered) == 0 && o.prompt == q.prompt && o.tools == q.tools && bytes.Equal(o.said, q.said)
		})
		all = append(all[max(0, len(all)-quotableTurns+1):], q)
		return all, len(all) * (2*quotedRunes + maxTwin)
	})
}

// quotableOf returns how a turn with this message begins; ok is false for a short message.
func quotableOf(said string, tools bool, prompt uint64, opens bool) (q quotable, ok bool) {
	q = quotable{said: normalized([]byte(said), quotedRunes), tools: tools, prompt: prompt, at: time.Now()}
	if opens && !tools {
		q.twin = normalized([]byte(said), maxTwin)
	}
	return q, utf8.RuneCount(q.said) >= minQuoted
}

// noteOpening stores how a conversation begins when its first request arrives: requests
// about a turn may arrive before its answer.
func (s *decider) noteOpening(c *dialect.Conversation, at *where) {
	if q, ok := quotableOf(string(c.Text(c.Last)), c.Tools, c.PromptHash(), true); ok && c.Opens() {
		s.addQuotable(at.person, q)
	}
}

// quotable stores how the turn begins and how its answer begins.
func (p *pendingTurn) quotable() {
	q, ok := quotableOf(p.turn.User, p.tools, p.prompt, p.opens)
	q.answered = normalized([]byte(p.turn.Assistant), quotedRunes)
	if ok && utf8.RuneCount(q.answered) >= minQuoted {
		q.stored = sentTurn{turn: p.turn.ID, targets: p.turn.Targets}
		p.s.addQuotable(p.at.person, q)
	}
}

// quoted returns the turn of the caller, if there is one, that a request quotes: its message
// and its answer, or its message shortly before or after the turn offers tools.
func (s *decider) quoted(c *dialect.Conversation, at *where) *quotable {
	all := s.quotables(at.person)
	if len(all) == 0 {
		return nil
	}
	raw := c.Raw(c.Last)
	text := normalized(raw[:min(len(raw), maxQuoting)], maxQuoting)
	for i := len(all) - 1; i >= 0; i-- {
		q := &all[i]
		answered := len(q.answered) > 0 && bytes.Contains(text, q.answered)
		if time.Since(q.at) < quotableFor && bytes.Contains(text, q.said) && (answered || c.Opens() && q.isTwin(c.PromptHash(), time.Now())) {
			return q
		}
	}
	return nil
}

// isTwin reports whether a request without tools, with the message of the turn in its own,
// is about the turn: agents ask so for a title, or check the message.
func (q *quotable) isTwin(prompt uint64, at time.Time) bool {
	return q.tools && q.prompt != prompt && at.Sub(q.at).Abs() < twinFor
}

// hasTwin reports whether the turn, which opens a conversation without tools, is about a
// turn that arrived after it.
func (p *pendingTurn) hasTwin() bool {
	if p.tools || !p.opens {
		return false
	}
	text := normalized([]byte(p.turn.User), maxTwin)
	return slices.ContainsFunc(p.s.quotables(p.at.person), func(q quotable) bool {
		return q.isTwin(p.prompt, p.turn.Said) && bytes.Contains(text, q.said)
	})
}

// twins returns the stored turns that are about this turn, if it opens a conversation with
// tools.
func (p *pendingTurn) twins() (stored []sentTurn) {
	own, ok := quotableOf(p.turn.User, p.tools, p.prompt, p.opens)
	if !ok || !p.tools || !p.opens {
		return nil
	}
	for _, q := range p.s.quotables(p.at.person) {
		if q.stored.turn != "" && own.isTwin(q.prompt, q.at) && bytes.Contains(q.twin, own.said) {
			stored = append(stored, q.stored)
		}
	}
	return stored
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
