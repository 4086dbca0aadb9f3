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
	alone  bool // a request had unknown tools and no place

	// Common properties of the session's turns. A client's own request in the session (a
	// chore) differs in them.
	tools  bool   // turns offer tools
	free   bool   // turns do not ask for a structured answer
	prompt uint64 // hash of the system prompt of the newest turn, with tools if turns offer them

	// odd is the conversation up to the message of the last chore, or of the last request
	// without the session's tools. If a later history contains it, it was a turn, and the
	// session has new properties.
	odd    dialect.Fingerprint
	newest dialect.Fingerprint // the same of the newest turn: a chore may have its message

	// A person types in a session with pauses. There, a program wrote a message that follows an
	// answer at once.
	answered time.Time           // end of its newest answer
	pauses   int                 // messages after a pause, up to typedPauses
	atOnce   dialect.Fingerprint // the conversation up to the newest message that followed at once
}

const (
	typedPause  = 2 * time.Second
	typedPauses = 2
	atOnce      = 300 * time.Millisecond
)

// follows returns the time between an answer and the message that follows it, or -1.
func (n *sessionNote) follows(c *dialect.Conversation, arrived time.Time) time.Duration {
	if n.answered.IsZero() || c.Last < 0 || c.Answered() || !answeredBefore(c) {
		return -1
	}
	return arrived.Sub(n.answered)
}

// isAtOnce reports whether the newest message of a session in which a person types followed the
// answer at once.
func (n *sessionNote) isAtOnce(c *dialect.Conversation, chain []dialect.Fingerprint, arrived time.Time) bool {
	after := n.follows(c, arrived)
	return c.Last >= 0 && chain[c.Last] == n.atOnce || n.pauses >= typedPauses && after >= 0 && after < atOnce
}

func (s *decider) noteKey(of sessionOf) memo.Key {
	return memo.Key{Owner: memo.Owner(of.base), Name: s.memo.Name(of.session)}
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
// no place, or another place. alone stays for the session: later requests may offer no tools.
func (s *decider) noteTurn(of sessionOf, at *placed, c *dialect.Conversation) {
	now := time.Now()
	change := func(n *sessionNote) {
		if n.follows(c, now) >= typedPause {
			n.pauses = min(n.pauses+1, typedPauses)
		}
		if at.session.atOnce {
			n.atOnce = at.session.chain[c.Last]
		}
		switch lacks := n.lacksTools(c); {
		case (lacks || n.differs(c)) && n.erred(c, at.session.chain):
			n.tools, n.free, n.odd = false, false, dialect.Fingerprint{}
		case lacks:
			n.odd = at.session.chain[c.Last]
		case c.Last >= 0:
			if n.newest = at.session.chain[c.Last]; n.odd == n.newest {
				n.odd = dialect.Fingerprint{}
			}
		}
		if !at.seen || at.says {
			n.place, n.placed = at.place, true
		}
		n.alone = n.alone || at.project.alone
		n.tools, n.free = n.tools || c.Tools, n.free || !c.Format
		if c.Tools || !n.tools {
			n.prompt = c.PromptHash()
		}
	}
	was := s.sessionNote(of)
	note := was
	if change(&note); note != was {
		s.changeNote(of, change)
	}
}

// isChore reports whether a request repeats a session's messages, but is no turn of it,
// such as a client's request for a title: it asks for a structured answer although the
// session's turns do not, or it offers no tools although they do, and has another system
// prompt or asks for a summary.
func (n *sessionNote) isChore(c *dialect.Conversation, chain []dialect.Fingerprint) bool {
	return n.differs(c) && !n.erred(c, chain)
}

func (n *sessionNote) differs(c *dialect.Conversation) bool {
	if c.Answered() || !answeredBefore(c) {
		return false
	}
	sumsUp, other := c.Beside() == dialect.KindSummary, n.prompt != 0 && c.PromptHash() != n.prompt
	return n.lacksTools(c) && (other || sumsUp) || !c.Tools && other && sumsUp || c.Format && n.free
}

// lacksTools reports whether a request continues the session without its tools.
func (n *sessionNote) lacksTools(c *dialect.Conversation) bool {
	return !c.Tools && n.tools && !c.Answered() && answeredBefore(c)
}

// erred reports whether the last request that differed was a turn: the history contains it.
func (n *sessionNote) erred(c *dialect.Conversation, chain []dialect.Fingerprint) bool {
	for i := range c.Last {
		if c.Messages[i].Person && chain[i] == n.odd {
			return true
		}
	}
	return false
}

// noteChore notes the conversation up to a chore's message.
func (s *decider) noteChore(of sessionOf, with dialect.Fingerprint) {
	if s.sessionNote(of).newest != with {
		s.changeNote(of, func(n *sessionNote) { n.odd = with })
	}
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
	quotedRunes   = 24      // programs shorten the messages that they quote
	minQuoted     = 10      // runes
	minCall       = 6       // runes
	maxTwin       = 512     // runes
	maxWhole      = 8 << 10 // runes
	maxQuoting    = 64 << 10
	maxTitle      = 80  // bytes
	maxTitled     = 512 // bytes of each message
)

// quotable is how a recent turn of a caller begins, or a call in an open turn: by it a request
// about the turn is recognized.
type quotable struct {
	said, answered []byte // normalized
	call           bool   // said is an argument of a call
	client         string
	tools          bool   // it offered tools
	prompt         uint64 // hash of its system prompt
	at             time.Time
	of             parent // its session and place
}

// normalized returns the letters and digits of a text, up to most runes, in lower case. It
// drops the escapes of JSON in a text.
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

// quotable stores how the turn begins and how its answer begins, which ends its calls; or, before its
// answer, the arguments of its calls.
func (p *pendingTurn) quotable(calls ...string) {
	texts, answered, least := append(calls, p.turn.User), normalized([]byte(p.turn.Assistant), quotedRunes), minQuoted
	if len(calls) > 0 {
		texts, answered, least = calls[:min(len(calls), quotableTurns)], nil, minCall
	}
	var list []quotable
	for _, text := range texts {
		q := quotable{normalized([]byte(text), quotedRunes), answered, len(calls) > 0, p.client, p.why.Twin.Tools, p.why.Twin.Prompt, time.Now(), parent{p.own, p.at.place}}
		if utf8.RuneCount(q.said) >= least && (q.call || utf8.RuneCount(answered) >= least) {
			list = append(list, q)
		}
	}
	p.s.memo.Update(keyOf(p.at.person, quotablesName), func(was any) (any, int) {
		all, _ := was.([]quotable)
		turns, calls := []quotable(nil), []quotable(nil)
		for _, q := range slices.Concat(all, list) {
			if q.call {
				calls = append(calls, q)
				continue
			}
			turns = append(turns, q)
			calls = slices.DeleteFunc(calls, func(o quotable) bool { return o.of == q.of })
		}
		all = slices.Concat(turns[max(0, len(turns)-quotableTurns):], calls[max(0, len(calls)-quotableTurns):])
		return all, len(all) * 4 * quotedRunes
	})
}

// quoted returns the newest turn of the caller, if there is one, whose message and answer a
// request quotes, or the call. It also returns the number of the quoted turns of that session. A
// program's prompt may quote them as well.
func (s *decider) quoted(c *dialect.Conversation, at *where, client string) (newest *quotable, turns int) {
	all, _ := s.memo.Get(keyOf(at.person, quotablesName)).([]quotable)
	if len(all) == 0 {
		return nil, 0
	}
	raw := c.Raw(c.Last)
	if c.Format || c.Beside() == dialect.KindSummary {
		raw = slices.Concat(raw, c.Instructions())
	}
	text := normalized(raw[:min(len(raw), maxQuoting)], maxQuoting)
	for i := len(all) - 1; i >= 0; i-- {
		q := &all[i]
		if time.Since(q.at) > quotableFor || q.call && (q.client != client || q.prompt == c.PromptHash()) || !bytes.Contains(text, q.said) || !bytes.Contains(text, q.answered) {
			continue
		}
		if newest == nil {
			newest = q
		}
		if q.of == newest.of && !q.call {
			turns++
		}
	}
	return newest, turns
}

// continuesProbe reports whether the history has a request about a turn: its program was not
// content with the answer.
func (s *decider) continuesProbe(c *dialect.Conversation, chain []dialect.Fingerprint) bool {
	for i := max(0, c.Last-maxHistory); i < c.Last; i++ {
		if c.Messages[i].Person && s.memo.Get(keyOf(chain[i], quotablesName)) != nil {
			return true
		}
	}
	return false
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

// opening counts the sessions of a person with the same beginning.
type opening struct {
	sessions int
	last     string
}

// next returns the count with a request of a session.
func (o opening) next(session string, c *dialect.Conversation) opening {
	if o.last == session || c.Answered() {
		return o
	}
	return opening{o.sessions + 1, session}
}

// beginning returns the key of a conversation's history before its first message here, and the
// conversation's name for opening. ok is false for a history without answers.
func (d *decision) beginning() (key memo.Key, session string, ok bool) {
	began, chain := d.plan.Began, d.session.chain
	if began <= 0 || began >= len(chain) || !answeredBefore(d.parsed.conv) {
		return key, "", false
	}
	if session = d.session.id; !d.session.byID {
		session = string(chain[began][:])
	}
	return keyOf(d.person.Link(dialect.RoleAssistant, chain[began-1][:]), openingName), session, true
}

// countBeginning counts the conversation that continues a beginning.
func (s *decider) countBeginning(d *decision) {
	key, session, ok := d.beginning()
	if !ok {
		return
	}
	s.countOpening(key, session, d.parsed.conv)
}

// sharesBeginning reports whether another conversation has the same beginning: its messages are
// examples in a prompt.
func (s *decider) sharesBeginning(d *decision) bool {
	key, session, ok := d.beginning()
	o, _ := s.memo.Get(key).(opening)
	return ok && o.next(session, d.parsed.conv).sessions > 1
}

// countFirst counts a session that a message begins, and returns how many began with that message:
// a program without a prompt and tools begins each of its conversations with the same words. It
// counts no other message.
func (s *decider) countFirst(c *dialect.Conversation, f *foundSession) (sessions int) {
	if c.Tools || answeredBefore(c) {
		return 0
	}
	return s.countOpening(keyOf(f.chain[c.Last], openingName), f.id, c)
}

// countOpening counts a session with a beginning, and returns the count.
func (s *decider) countOpening(key memo.Key, session string, c *dialect.Conversation) (sessions int) {
	s.memo.Update(key, func(was any) (any, int) {
		o, _ := was.(opening)
		o = o.next(session, c)
		sessions = o.sessions
		return o, len(o.last)
	})
	return sessions
}
