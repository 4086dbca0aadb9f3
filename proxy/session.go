package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// session is the conversation that a request goes on with.
type session struct {
	id    string
	first bool         // the conversation begins with this request
	kind  dialect.Kind // what the request is for, as its session tells
	guess bool         // the kind was inferred by what the session's turns have in common
	agent bool         // a subagent speaks
	chain []dialect.Fingerprint
}

// session finds out which conversation a request goes on with: the one that it
// names, or the one in which this was said.
func (s *decider) session(ctx context.Context, known Sessions, b *buffers, p *parsed, at *placed) (f session, no *refusal) {
	b.chain = s.hasher.Chain(p.conv, at.root, b.chain[:0])
	f = session{id: at.names.session, kind: at.names.kind, chain: b.chain}
	if !p.conv.InTime() { // or where it takes place was not found in time
		return f, stopped(p.conv)
	}
	s.memo.Keep(p.conv, at.root, f.chain, &b.known)
	if f.id == "" {
		f.id, f.first = s.spoken(ctx, known, p.conv, f.chain, &at.where)
	}
	if of := (sessionOf{at.base, f.id}); s.isChore(of, f.kind, p.conv, f.chain) {
		f.kind, f.guess = p.conv.Beside(), true
	}
	f.agent = s.isSubagent(p.conv, f.chain, &at.where) || p.subagent
	return f, nil
}

// named is the session that a request names.
type named struct {
	session string // empty: it names none
	byID    bool   // its client or its connection does, and not what was answered
	held    *heldEnd
	kind    dialect.Kind // what the request is for: of a transcript what is asked about it
}

// named finds the session that a request names: by an id, by the conversation that
// its connection holds, by the answers that it refers to, or by a transcript.
//
// A person may have pasted a transcript that is not known; one that is known was
// written by a client.
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

// references are the answers that a request refers to and that the provider holds,
// the newest first: where the request says where it takes place, only there.
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

// answered finds the session in which one of those answers ended; empty: it is not
// known.
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

// spoken finds the session of a conversation that has no id, by where it takes
// place and what was said in it: after a turn it is known how the next request
// must begin. first says that the conversation begins with this request.
func (s *decider) spoken(ctx context.Context, known Sessions, c *dialect.Conversation, chain []dialect.Fingerprint, at *where) (session string, first bool) {
	last := [16]byte(chain[c.Last])
	if id, ok := known.Pending(ctx, last); ok {
		return id, false
	}
	// An answer ends each beginning that was remembered; the newest first.
	var answered [][16]byte
	for i := range c.Answers {
		if f := [16]byte(chain[i]); len(answered) == 0 || answered[len(answered)-1] != f {
			answered = append(answered, f)
		}
	}
	if id := s.answered(ctx, known, answered); id != "" {
		return id, false
	}
	// An earlier turn whose answer was never seen to its end: the client may
	// have kept a part of it.
	var asked [][16]byte
	for i := c.Last - 1; i >= 0; i-- {
		if c.Messages[i].Person {
			asked = append(asked, chain[i])
		}
	}
	if id, ok := known.Pending(ctx, asked...); ok {
		return id, false
	}
	// The beginning may have been cut off, perhaps with the message that the first
	// answer left replies to. What the model has answered in this place is known
	// here; a greeting that a client writes itself is not.
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
	// The answer may have ended between the two questions: a turn is pending
	// until its answer is known.
	if id := s.answered(ctx, known, answered); id != "" {
		return id, false
	}
	session = "session:" + rand.Text()
	if len(answered) > 0 {
		// Other replicas that know nothing of it come to the same.
		session = "session:" + hex.EncodeToString(answered[len(answered)-1][:])
	}
	known.SetPending(ctx, last, session)
	if len(answered) > 0 {
		// The same history again, with this message or another, is the same
		// conversation, though nothing of it was seen.
		known.PutAsync(answered[0], session)
	}
	return session, true
}

// continued returns the turn that a request without words of a person continues; nil
// when that is not known, or was begun elsewhere.
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
