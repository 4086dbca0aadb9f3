package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// session finds the session of a conversation that has no id, by where it takes
// place and what was said in it: after a turn it is known how the next request
// must begin. first says that the conversation begins with this request.
func (s *decider) session(ctx context.Context, r *request, at *where) (session string, first bool) {
	last := [16]byte(r.chain[r.conv.Last])
	if id, ok := r.memory.Sessions.Pending(ctx, last); ok {
		return id, false
	}
	// An answer ends each beginning that was remembered; the newest first.
	var answered [][16]byte
	for i := range r.conv.Answers {
		if f := [16]byte(r.chain[i]); len(answered) == 0 || answered[len(answered)-1] != f {
			answered = append(answered, f)
		}
	}
	if id, ok := s.answered(ctx, r.memory, answered); ok {
		return id, false
	}
	// An earlier turn whose answer was never seen to its end: the client may
	// have kept a part of it.
	var asked [][16]byte
	for i := r.conv.Last - 1; i >= 0; i-- {
		if r.conv.Messages[i].Person {
			asked = append(asked, r.chain[i])
		}
	}
	if id, ok := r.memory.Sessions.Pending(ctx, asked...); ok {
		return id, false
	}
	// The beginning may have been cut off, the message too that the first answer
	// left belongs to. Known here is what the model has answered, in this place:
	// a greeting that a client writes itself is not.
	for i := r.conv.Last - 1; i >= 0; i-- {
		if r.conv.Messages[i].Role != dialect.RoleAssistant {
			continue
		}
		if text := r.conv.Text(i); len(text) >= dialect.Telling {
			if id, ok := s.answered(ctx, r.memory, [][16]byte{at.here.Link(dialect.RoleAssistant, text)}); ok {
				return id, false
			}
			break
		}
	}
	// The answer may have ended between the two questions: a turn is pending
	// until its answer is known.
	if id, ok := s.answered(ctx, r.memory, answered); ok {
		return id, false
	}
	session = "session:" + rand.Text()
	if len(answered) > 0 {
		// Other replicas that know nothing of it come to the same.
		session = "session:" + hex.EncodeToString(answered[len(answered)-1][:])
	}
	r.memory.Sessions.SetPending(ctx, last, session)
	if len(answered) > 0 {
		// The same history again, with this message or another, is the same
		// conversation, though nothing of it was seen.
		r.memory.Sessions.PutLater(answered[0], session)
	}
	return session, true
}

// transcribed finds the session whose transcript a request holds, or whose
// summary stands in place of its beginning. A person may have pasted a transcript
// that is not known; one that is known was written by a client.
func (s *decider) transcribed(ctx context.Context, r *request, at *where) string {
	t, own := r.conv.Transcript()
	session, ok := s.answered(ctx, r.memory, r.conv.Told(&t, at.person))
	if r.conv.Kind == dialect.KindTurn && (own || ok) {
		r.conv.Kind = t.Kind
	}
	return session
}

// answered finds the session in which one of those answers ended.
func (s *decider) answered(ctx context.Context, m *Memory, fingerprints [][16]byte) (session string, ok bool) {
	if len(fingerprints) == 0 {
		return "", false
	}
	session, ok, err := m.Sessions.Find(ctx, fingerprints)
	if err != nil {
		s.log.Warn("a session cannot be looked up", "error", err)
	}
	return session, ok
}

// referred finds the session of the answers that a request refers to and that
// the provider holds: where the request says where it takes place, only there.
func (s *decider) referred(ctx context.Context, r *request, at *where) string {
	root := at.base
	if at.says {
		root = at.here
	}
	var answers [][16]byte // the newest first
	if previous := r.conv.Field(dialect.FieldPreviousResponseID); len(previous) > 0 {
		answers = append(answers, root.Link(dialect.RoleOther, previous))
	}
	r.conv.References(func(id []byte) { answers = append(answers, root.Link(dialect.RoleOther, id)) })
	session, _ := s.answered(ctx, r.memory, answers)
	return session
}
