package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// session is the conversation that a request goes on with.
type session struct {
	id    string
	first bool         // the conversation begins with this request
	kind  dialect.Kind // what the request is for, as its session tells
	guess bool         // the kind was inferred by what the session's turns have in common
	chain []dialect.Fingerprint
}

// session finds out which conversation a request goes on with: the one that it
// names, or the one in which this was said.
func (s *decider) session(ctx context.Context, r *request, p *parsed, at *placed) (f session, no *refusal) {
	r.buffers.chain = s.hasher.Chain(p.conv, at.root, r.buffers.chain[:0])
	f = session{id: at.names.session, kind: at.names.kind, chain: r.buffers.chain}
	if !p.conv.InTime() { // or where it takes place was not found in time
		return f, stopped(p.conv)
	}
	s.memo.Keep(p.conv, at.root, f.chain, &r.buffers.known)
	if f.id == "" {
		f.id, f.first = s.spoken(ctx, r.memory, p.conv, f.chain, &at.where)
	}
	if s.isChore(sessionOf{at.base, f.id}, f.kind, p.conv, f.chain) {
		f.kind, f.guess = p.conv.Beside(), true
	}
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
func (s *decider) named(ctx context.Context, r *request, p *parsed, at *where, id string) named {
	n := named{session: id, held: r.held.of(at, p.claims.Codex()), kind: p.conv.Kind}
	if n.session == "" && n.held != nil {
		n.session = n.held.session
	}
	if n.byID = n.session != ""; !n.byID {
		n.session = s.answered(ctx, r.memory, references(p.conv, at))
	}
	t, own := p.conv.Transcript()
	told := s.answered(ctx, r.memory, p.conv.AnswerFingerprints(&t, at.person))
	if n.kind == dialect.KindTurn && (own || told != "") {
		n.kind = t.Kind
	}
	if n.session == "" {
		n.session = told
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
func (s *decider) answered(ctx context.Context, m *Memory, fingerprints [][16]byte) string {
	if len(fingerprints) == 0 {
		return ""
	}
	session, _, err := m.Sessions.Find(ctx, fingerprints)
	if err != nil {
		s.log.Warn("a session cannot be looked up", "error", err)
	}
	return session
}

// spoken finds the session of a conversation that has no id, by where it takes
// place and what was said in it: after a turn it is known how the next request
// must begin. first says that the conversation begins with this request.
func (s *decider) spoken(ctx context.Context, m *Memory, c *dialect.Conversation, chain []dialect.Fingerprint, at *where) (session string, first bool) {
	last := [16]byte(chain[c.Last])
	if id, ok := m.Sessions.Pending(ctx, last); ok {
		return id, false
	}
	// An answer ends each beginning that was remembered; the newest first.
	var answered [][16]byte
	for i := range c.Answers {
		if f := [16]byte(chain[i]); len(answered) == 0 || answered[len(answered)-1] != f {
			answered = append(answered, f)
		}
	}
	if id := s.answered(ctx, m, answered); id != "" {
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
	if id, ok := m.Sessions.Pending(ctx, asked...); ok {
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
			if id := s.answered(ctx, m, [][16]byte{at.here.Link(dialect.RoleAssistant, text)}); id != "" {
				return id, false
			}
			break
		}
	}
	// The answer may have ended between the two questions: a turn is pending
	// until its answer is known.
	if id := s.answered(ctx, m, answered); id != "" {
		return id, false
	}
	session = "session:" + rand.Text()
	if len(answered) > 0 {
		// Other replicas that know nothing of it come to the same.
		session = "session:" + hex.EncodeToString(answered[len(answered)-1][:])
	}
	m.Sessions.SetPending(ctx, last, session)
	if len(answered) > 0 {
		// The same history again, with this message or another, is the same
		// conversation, though nothing of it was seen.
		m.Sessions.PutAsync(answered[0], session)
	}
	return session, true
}
