package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// where is the place of a request, and the fingerprints of its conversation before the
// first message. A fingerprint hashes the one before it and one more part, so two callers,
// workspaces or places never share one:
//
//	fingerprint  new part, and its function     key of
//	person       the caller: rootOf             Sessions: answers, for transcripts, parents; PendingTurns;
//	  │                                         memo: the model's texts, quotable turns, templates
//	base         the header's workspace: where  Sessions: references; memo: notes about sessions
//	  │
//	here         the place: where, begin        Sessions: references, answers (see spoken)
//	  │
//	root         the provider's history: begin  none
//	  │
//	chain[i]     message i: Conversation.Chain  inject: decisions; Sessions: threads of subagents
//	  │ opening  before the newest: newPending  memo: edited turns; Doubts
//	  │ last     the newest: newPending         Sessions: pending turns, questions; Doubts
//	  │ end      all of the request             memo: open tool calls
//	  │
//	answer       the answer: pendingTurn.chain  Sessions; root of the next request (heldEnd)
type where struct {
	place dialect.Place
	says  bool // the request itself states the place
	seen  bool // the place is from an earlier request of the session, which had none or one

	person, base, here, root dialect.Fingerprint
}

// placed is the place, the session and the project of a request.
type placed struct {
	where
	session foundSession
	project project
	pending *pendingTurn // the turn that a request without a new message of a person continues
}

// foundSession is the session of a request.
type foundSession struct {
	id           string // of the parent, for a subagent's
	own          string // of the conversation itself
	byID         bool   // named by the client's id or the connection, not by an answer
	withoutPlace bool   // found without its place: not by its messages, whose fingerprints include it
	first        bool   // no earlier request of the conversation was found
	held         *heldEnd
	chain        []dialect.Fingerprint
	turnOwner
}

// where finds the place, the session and the project of a request, and the root of its
// conversation.
func (s *decider) where(ctx context.Context, r *request, p *parsed, who *graphiti.Who) (at placed, no *refusal) {
	known, b, f := r.memory.Sessions, r.buffers, &at.session
	at.place, at.says = p.states, p.states != (dialect.Place{})
	at.person = rootOf(who)
	at.base = at.person.In(p.claims.NamedWorkspace(), dialect.Place{})
	at.here = at.base.In("", at.place)
	began := time.Now()
	s.awaitAnswer(ctx, r, p.conv, &at.where)
	s.named(ctx, known, r.held, p, &at, who.Session)
	s.begin(p, &at)
	if p.conv.Last < 0 {
		at.pending = continued(r.memory.Pending, p.conv, &at.where)
		if at.pending != nil || f.id == "" || f.kind != dialect.KindSummary && !p.conv.Resumes() {
			return at, noPerson
		}
	}
	p.conv.Waited(time.Since(began))
	b.chain = p.conv.Chain(at.root, b.chain[:0])
	if f.chain = b.chain; !p.conv.InTime() { // or the steps above took too long
		return at, stopped(p.conv)
	}
	if f.withoutPlace = f.id != ""; !f.withoutPlace {
		f.own, f.first = s.spoken(ctx, known, p.conv, f.chain, &at.where)
		f.id = f.own
		f.inherit(&at.where, s.parentOf(ctx, known, childKey(&at.where, f.own), f.first))
	}
	asked := s.owner(ctx, r, p, &at)
	at.project = s.project(r.memory, p, &at, asked)
	return at, nil
}

// awaitAnswer waits until the answer that a request refers to is processed: clients refer to
// an answer as soon as they have read it. It waits for half of the request's time at most,
// because a reference may be older than this process.
func (s *decider) awaitAnswer(ctx context.Context, r *request, c *dialect.Conversation, at *where) {
	of, known := at.person, func() bool { return false }
	if id := c.Field(dialect.FieldConversation); id != nil { // all answers of the conversation count
		of = at.person.Link(dialect.RoleOther, id)
	} else if refers := references(c, at); r.held == nil && len(refers) > 0 {
		known = func() bool {
			return continued(r.memory.Pending, c, at) != nil || s.answered(ctx, r.memory.Sessions, refers[:1]) != ""
		}
	} else {
		return
	}
	until, _ := ctx.Deadline()
	half, cancel := context.WithTimeout(ctx, time.Until(until)/2)
	defer cancel()
	r.memory.Responses.Await(half, of, known)
}

// named finds the session that a request names: by an id, by the conversation that its
// connection holds, by the answers that it refers to, or by a transcript.
//
// A client has written a transcript of a known session. A person may have pasted an
// unknown transcript.
func (s *decider) named(ctx context.Context, known Sessions, held *heldEnd, p *parsed, at *placed, id string) {
	f := &at.session
	f.id, f.held, f.kind = id, held.of(&at.where, p.claims.Codex()), p.conv.Kind
	if f.id == "" && f.held != nil {
		f.id = f.held.session
	}
	if f.byID = f.id != ""; !f.byID {
		f.id = s.answered(ctx, known, references(p.conv, &at.where))
	}
	t, own := p.conv.Transcript()
	answered := s.answered(ctx, known, p.conv.AnswerFingerprints(&t, at.person))
	if f.kind == dialect.KindTurn && (own || answered != "") {
		f.kind = t.Kind
	}
	if f.id == "" {
		f.id = answered
	}
	if f.own = f.id; f.id != "" {
		f.inherit(&at.where, s.parentOf(ctx, known, childKey(&at.where, f.id), false))
	}
}

// begin finds the root of the conversation. A request without a place gets the place of
// the session that it names, or of the conversation that its connection holds. The
// directory that a request states is never replaced.
func (s *decider) begin(p *parsed, at *placed) {
	held, from := at.session.held, p.conv.Began()
	if !at.says {
		if held != nil {
			at.place, at.seen = held.at.place, true
		} else if at.session.id != "" {
			seen := s.sessionNote(sessionOf{at.base, at.session.id})
			at.place, at.seen = seen.place, seen.placed
		}
		if path := p.claims.CodexRepo(at.place.Directory).Path; path != "" && !workspace.Within(path, at.place.Directory) {
			at.place, at.says = dialect.Place{Directory: path}, true
		}
		at.here = at.base.In("", at.place)
		from = at.place
	}
	previous := p.conv.Field(dialect.FieldPreviousResponseID)
	switch {
	case held != nil && from == held.at.place:
		at.root = held.end
	case held != nil:
		at.root = held.end.In("", from)
	case len(previous) > 0:
		at.root = at.here.Link(dialect.RoleOther, previous)
	case from == at.place:
		at.root = at.here
	default:
		at.root = at.base.In("", from)
	}
}

// heldEnd is the end of a conversation that the provider holds, after an answer. A
// request that refers to the answer belongs to the same conversation as a request with
// the whole history.
type heldEnd struct {
	end     dialect.Fingerprint
	at      where // of the answered request
	session string
}

// of returns h if a request with this place can belong to the conversation, and nil
// otherwise. Such a request has the same person and workspace, and the same place unless
// the client may change its directory (moves).
func (h *heldEnd) of(at *where, moves bool) *heldEnd {
	if h == nil || h.at.base != at.base || !moves && at.says && h.at.place != (dialect.Place{}) && h.at.place != at.place {
		return nil
	}
	return h
}

// rootOf returns the fingerprint of a caller's conversation before its first message. A
// bot shares no conversation with the person who owns its credential.
func rootOf(w *graphiti.Who) dialect.Fingerprint {
	speaker := w.User
	if w.SystemActor != "" {
		speaker = "system:" + w.SystemActor
	}
	return dialect.Root(w.Tenant, speaker)
}

// references returns the fingerprints of the answers at the provider that a request
// refers to, the newest first. If the request states its place, the fingerprints include
// the place.
func references(c *dialect.Conversation, at *where) (answers [][16]byte) {
	if previous := c.Field(dialect.FieldPreviousResponseID); len(previous) > 0 {
		answers = append(answers, at.here.Link(dialect.RoleOther, previous))
	}
	c.References(func(id []byte) { answers = append(answers, at.here.Link(dialect.RoleOther, id)) })
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
	var others [][16]byte
	if c.Answered() {
		others = append(others, askedIn(chain[c.Last]))
	} else if len(asked) > 0 {
		others = append(others, askedIn(asked[0]))
	}
	// The client may have dropped the beginning, up to the question of the first
	// remaining answer. The fingerprints of the model's answers in this place are stored.
	// A client's own greeting has no stored fingerprint.
	for i := c.Last - 1; i >= 0; i-- {
		if c.Messages[i].Role != dialect.RoleAssistant {
			continue
		}
		if text := c.Text(i); len(text) >= dialect.Telling {
			others = append(others, at.here.Link(dialect.RoleAssistant, text))
			break
		}
	}
	// The answer may have ended between the queries: a turn is pending until its answer is
	// stored.
	if id := s.answered(ctx, known, append(others, answered...)); id != "" {
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

// askedIn returns the fingerprint of a conversation up to a person's message with any answer.
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
			turn, ok := open.find(at.person.Link(dialect.RoleOther, id))
			if ok && (turn.at.here == at.here || !at.says && at.base == at.person) {
				return &turn
			}
		}
	}
	return nil
}

// project is the workspace of one request.
type project struct {
	identity.Place
	key     string   // canonical; empty if unknown
	source  string   // source of the key
	others  []string // keys of all sources, for the rule Ignored
	unknown bool     // the project is unknown, so it has no memory
	alone   bool     // any project is possible, so the request has its session's memory only
	missing observe.Missing
	named   bool // a header names the project
	late    bool // the file system has not answered yet
}

// project finds the project of a request of a kind.
func (s *decider) project(m *Memory, p *parsed, at *placed, kind dialect.Kind) (w project) {
	defer func() {
		if bug := recover(); bug != nil {
			wire.LogPanic(s.log, "finding the workspace", bug)
			w = project{unknown: true}
		}
	}()
	w.Directory, w.Named, w.ByPath = at.place.Directory, at.place.Repo, m.Rules.RemotePaths
	w.named = p.claims.NamedWorkspace() != ""
	w.unknown = w.unplaced(m, p, at, kind)
	// Agents that name no place may work in any project, unless their tools are harmless.
	placed := m.Rules.Optional || w.named || w.unknown || at.place != (dialect.Place{})
	if !placed && (p.conv.UnknownTools(p.claims.FromServer()) || s.sessionNote(sessionOf{at.base, at.session.id}).alone) {
		w.alone, w.missing = true, observe.MissingDirectory
	}
	if m.Identity.Places != nil && w.Directory != "" {
		var ok bool
		w.Repo, ok = m.Identity.Places.Find(w.Directory)
		w.late = !ok
	}
	w.key, w.source = p.claims.Workspace(w.Place)
	if len(m.Rules.Ignored) > 0 {
		w.others = p.claims.Workspaces(w.Place)
	}
	// A place that is only a directory must be on this machine: other machines and containers
	// may have a directory with the same name.
	if w.Directory != "" && w.Repo.Dir == "" && w.key == "" && !w.late {
		w.unknown, w.missing = true, observe.MissingHere
	}
	return w
}

// unplaced reports whether the place of a request is unknown, but required: the project
// may be excluded from memory, or may differ from the project of the facts. A client that
// works in a directory states the directory in each conversation. If the statement is
// missing or occurs twice, it has an unknown form, or was forged.
//
// A summary covers a whole conversation, and some clients ask for it with another prompt,
// which does not state the place. A session found by its messages needs no statement: their
// fingerprints include the place.
func (w *project) unplaced(m *Memory, p *parsed, at *placed, kind dialect.Kind) bool {
	works, local := p.claims.Program().Places, m.Identity.Places != nil
	switch {
	case at.place.Unclear: // the rules may be about one of the places
		return works || local || len(m.Rules.Ignored)+len(m.Rules.Trusted) > 0 || !w.named
	case at.place != (dialect.Place{}) || w.named:
	case kind == dialect.KindTurn:
		return works
	case kind == dialect.KindSummary && (at.session.first || at.session.withoutPlace):
		return works || local && !at.seen
	}
	return false
}
