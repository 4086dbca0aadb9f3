package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// session is the session of a request.
type session struct {
	id    string
	first bool         // no earlier request of the conversation was found
	kind  dialect.Kind // the request's kind, compared with its session
	guess bool         // the kind was inferred from the session's other turns
	doubt bool         // the request may be about another turn
	agent bool         // the request is from a subagent
	chain []dialect.Fingerprint
}

// session finds the session of a request: the session that it names, or the session with
// its messages.
func (s *decider) session(ctx context.Context, known Sessions, b *buffers, p *parsed, at *placed) (f session, no *refusal) {
	b.chain = s.hasher.Chain(p.conv, at.root, b.chain[:0])
	f = session{id: at.names.session, kind: at.names.kind, chain: b.chain}
	if !p.conv.InTime() { // or the place step took too long
		return f, stopped(p.conv)
	}
	s.memo.Keep(p.conv, at.root, f.chain, &b.known)
	if f.id == "" {
		f.id, f.first = s.spoken(ctx, known, p.conv, f.chain, &at.where)
	}
	switch of := (sessionOf{at.base, f.id}); {
	case f.kind != dialect.KindTurn:
	case s.isChore(of, p.conv, f.chain):
		f.kind, f.guess = p.conv.Beside(), true
	default:
		f.kind, f.doubt = s.aboutTurn(of, p.conv, &at.where)
	}
	f.agent = s.isSubagent(p.conv, f.chain, &at.where) || p.subagent
	return f, nil
}

// named is the session that a request names.
type named struct {
	session string // empty if it names none
	byID    bool   // named by the client's id or the connection, not by an answer
	held    *heldEnd
	kind    dialect.Kind // of the request; for a transcript, of the question about it
}

// named finds the session that a request names: by an id, by the conversation that its
// connection holds, by the answers that it refers to, or by a transcript.
//
// A client has written a transcript of a known session. A person may have pasted an
// unknown transcript.
func (s *decider) named(ctx context.Context, known Sessions, held *heldEnd, p *parsed, at *where, id string) named {
	n := named{session: id, held: held.of(at, p.claims.Codex()), kind: p.conv.Kind}
	if n.session == "" && n.held != nil {
		n.session = n.held.session
	}
	if n.byID = n.session != ""; !n.byID {
		n.session = s.answered(ctx, known, references(p.conv, at))
	}
	t, own := p.conv.Transcript()
	answered := s.answered(ctx, known, p.conv.AnswerFingerprints(&t, at.person))
	if n.kind == dialect.KindTurn && (own || answered != "") {
		n.kind = t.Kind
	}
	if n.session == "" {
		n.session = answered
	}
	return n
}

// references returns the fingerprints of the answers at the provider that a request
// refers to, the newest first. If the request states its place, the fingerprints include
// the place.
func references(c *dialect.Conversation, at *where) (answers [][16]byte) {
	root := at.base
	if at.says {
		root = at.here
	}
	if previous := c.Field(dialect.FieldPreviousResponseID); len(previous) > 0 {
		answers = append(answers, root.Link(dialect.RoleOther, previous))
	}
	c.References(func(id []byte) { answers = append(answers, root.Link(dialect.RoleOther, id)) })
	return answers
}

// answered returns the session with one of the answers; empty if unknown.
func (s *decider) answered(ctx context.Context, known Sessions, fingerprints [][16]byte) string {
	if len(fingerprints) == 0 {
		return ""
	}
	session, _, err := known.Find(ctx, fingerprints)
	if err != nil {
		s.log.Warn("a session cannot be looked up", "error", err)
	}
	return session
}

// spoken finds the session of a conversation without an id, by its place and messages:
// each turn stores the fingerprints that the next request may begin with. first reports
// whether no request of the conversation was found.
func (s *decider) spoken(ctx context.Context, known Sessions, c *dialect.Conversation, chain []dialect.Fingerprint, at *where) (session string, first bool) {
	last := [16]byte(chain[c.Last])
	if id, ok := known.Pending(ctx, last); ok {
		return id, false
	}
	// The stored beginnings end with an answer. The newest comes first.
	var answered [][16]byte
	for i := range c.Answers {
		if f := [16]byte(chain[i]); len(answered) == 0 || answered[len(answered)-1] != f {
			answered = append(answered, f)
		}
	}
	if id := s.answered(ctx, known, answered); id != "" {
		return id, false
	}
	// An earlier turn may have no complete answer, and the client may show a part of it.
	var asked [][16]byte
	for i := c.Last - 1; i >= 0; i-- {
		if c.Messages[i].Person {
			asked = append(asked, chain[i])
		}
	}
	if id, ok := known.Pending(ctx, asked...); ok {
		return id, false
	}
	// The client may show another answer than the model gave.
	newest := chain[c.Last]
	if !c.Answered() && len(asked) > 0 {
		newest = asked[0]
	}
	if c.Answered() || len(asked) > 0 {
		if id := s.answered(ctx, known, [][16]byte{askedIn(newest)}); id != "" {
			return id, false
		}
	}
	// The client may have dropped the beginning, up to the question of the first
	// remaining answer. The fingerprints of the model's answers in this place are stored.
	// A client's own greeting has no stored fingerprint.
	for i := c.Last - 1; i >= 0; i-- {
		if c.Messages[i].Role != dialect.RoleAssistant {
			continue
		}
		if text := c.Text(i); len(text) >= dialect.Telling {
			if id := s.answered(ctx, known, [][16]byte{at.here.Link(dialect.RoleAssistant, text)}); id != "" {
				return id, false
			}
			break
		}
	}
	// The answer may have ended between the two queries: a turn is pending until its
	// answer is stored.
	if id := s.answered(ctx, known, answered); id != "" {
		return id, false
	}
	switch {
	case c.Answered():
		// The beginning of this turn was not seen. A new conversation that begins with the
		// same message is another session, with decisions of its own.
		return derived(chain[c.Last].Link(dialect.RoleOther, []byte("rounds"))), true
	case answeredBefore(c):
		session = derived(chain[c.Last])
	default:
		session = "session:" + rand.Text()
	}
	known.SetPending(ctx, last, session)
	return session, true
}

// askedIn returns the fingerprint of a conversation up to a person's message with an answer,
// whatever the answer.
func askedIn(f dialect.Fingerprint) dialect.Fingerprint {
	return f.Link(dialect.RoleOther, []byte("asked"))
}

// derived returns the session of a conversation with a history that was not seen. Retries
// and other replicas derive the same one, from all of the history: some clients begin each
// conversation with the same examples.
func derived(f dialect.Fingerprint) string { return "session:" + hex.EncodeToString(f[:]) }

// continued returns the turn that a request without a person's message continues; nil if
// the turn is unknown, or began in another place.
func continued(open *PendingTurns, c *dialect.Conversation, at *where) *pendingTurn {
	for _, f := range []dialect.Field{dialect.FieldPreviousResponseID, dialect.FieldConversation} {
		if id := c.Field(f); id != nil {
			turn, ok := open.Find(at.person.Link(dialect.RoleOther, id))
			if ok && (turn.at.here == at.here || !at.says && at.base == at.person) {
				return &turn
			}
		}
	}
	return nil
}

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
