package proxy

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/contain"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// watch returns what gets a copy of the answer, or nil when nothing is to be
// learnt from it. The answer to a turn that is not to be kept may still be
// needed to know how the conversation goes on.
func (s *Server) watch(c *call, head *wire.AnswerHead, plan inject.Plan) (tee wire.Tee) {
	contain.Run(s.log, "watching an answer", func() {
		if t := s.watching(c, head, plan); t != nil {
			tee = t
		}
	})
	return tee
}

func (s *Server) watching(c *call, head *wire.AnswerHead, plan inject.Plan) *capture.Tee {
	if c.route.fetched != nil && head.Status == fasthttp.StatusOK {
		if e := s.fetched(c); e != nil { // rounds.go
			return c.memory.Watcher.Watch(c.route.fetched.NewReader(), capture.Meta{
				Stream: head.Event, Encoding: strings.ToLower(string(head.Encoding)), Order: xxhash.Sum64String(e.who.Session),
			}, e.take)
		}
	}
	if head.Status != fasthttp.StatusOK || !s.watches(c, plan) {
		return nil
	}
	e, earlier := s.endingOf(c, plan)
	earlier()
	told := c.trace.awaitAnswer()
	tee := c.memory.Watcher.Watch(c.route.dialect.NewReader(), capture.Meta{
		Stream:   head.Event,
		Encoding: strings.ToLower(string(head.Encoding)),
		Order:    xxhash.Sum64String(e.who.Session),
	}, s.taking(e, told))
	if tee == nil {
		c.trace.unread()
	}
	return tee
}

// taking is what is done with an answer that has been read.
func (s *Server) taking(e *ending, told func(dialect.Answer)) func(dialect.Answer, bool) {
	return func(a dialect.Answer, clean bool) {
		s.metrics.used(a.Usage)
		told(a)
		e.take(a, clean)
	}
}

// watches reports whether anything is to be learnt from the answer.
func (s *Server) watches(c *call, plan inject.Plan) bool {
	return c.route.match.Use == dialect.UseTurn && plan.Turn != "" && c.memory.Planner != nil &&
		(len(plan.Write) > 0 || c.mem.chained || c.mem.round != nil) && !c.memory.Kept(plan.Turn, plan.Write)
}

// endingOf is how the turn is to end, and what keeps what was said before it:
// to be called when the upstream has accepted the request. What the worker
// needs later is copied: the request's buffers are reused.
func (s *Server) endingOf(c *call, plan inject.Plan) (e *ending, earlier func()) {
	e, earlier = c.mem.round, func() {}
	if e == nil {
		e = s.begun(c, plan)
		if e.turn.Kind == "" && len(plan.Unseen) > 0 && len(plan.Write) > 0 {
			earlier = s.backfill(c, plan)
		}
	}
	if len(e.turn.Targets) > 0 {
		c.memory.Open.Busy(&e.turn)
	}
	return e, earlier
}

// begun is the end, to come, of a turn of which the request says all that is
// known.
func (s *Server) begun(c *call, plan inject.Plan) *ending {
	e := &ending{
		s:       s,
		memory:  c.memory,
		who:     c.mem.who,
		at:      c.mem.at,
		last:    [16]byte(c.chain[c.conv.Last]),
		end:     c.chain[len(c.chain)-1],
		turn:    s.turn(c, plan.Turn, plan.Write, plan.Generation),
		chained: c.mem.chained,
		recall:  plan.Recall,
	}
	if id := c.conv.Field(dialect.FieldConversation); id != nil {
		e.held = e.at.person.Link(dialect.RoleOther, id)
	}
	if c.conv.Kind == dialect.KindSummary {
		e.turn.Kind, e.chained = graphiti.KindSessionSummary, false
		return e
	}
	e.turn.User = string(c.conv.Text(c.conv.Last))
	c.mem.copied += len(e.turn.User)
	if e.recall && len(plan.Write) > 0 {
		e.work = append(e.work, inject.Work(&c.conv)...)
		c.mem.copied += len(e.work)
	} else {
		e.recall = false
	}
	if len(plan.Write) > 0 && c.memory.Note.Tools {
		e.turn.Tools = c.conv.ToolsUsed(c.route.dialect)
	}
	return e
}

// turn is what is known of a turn without what was said.
func (s *Server) turn(c *call, id string, targets []graphiti.Target, generation int64) ledger.Turn {
	t := ledger.Turn{
		ID:      id,
		Session: c.mem.who.Session,
		Owner:   OwnerOf(c.mem.who),
		Said:    c.mem.said,

		Workspace: c.mem.who.Workspace,
		Client:    clientFamily(c.head.UserAgent()),
		Targets:   targets,

		Generation: generation,
		Trace:      c.trace.parent(),
	}
	if c.memory.Note.Git {
		t.Git = gitOf(c)
	}
	return t
}

// OwnerOf names whose turns a caller's are.
func OwnerOf(w graphiti.Who) string { return w.Owner() }

// backfill returns what records what was said before the conversation was first
// seen, or shortly before a crash. When it was said is not known: shortly before
// now, in its order.
func (s *Server) backfill(c *call, plan inject.Plan) func() {
	var turns []ledger.Turn
	for i, u := range plan.Unseen {
		if c.memory.Known(u.Turn) {
			continue
		}
		id := u.Turn.String()
		answer := c.conv.AnswerTo(u.Message)
		if answer == nil {
			c.memory.Begin(id) // there is nothing to record
			continue
		}
		t := s.turn(c, id, plan.Write, u.Generation)
		t.Earlier = true
		t.User, t.Assistant = string(c.conv.Text(u.Message)), string(answer)
		t.Said = t.Said.Add(time.Duration(i-len(plan.Unseen)) * 2 * time.Millisecond)
		t.Answered = t.Said.Add(time.Millisecond)
		turns = append(turns, t)
		c.mem.copied += len(t.User) + len(t.Assistant)
	}
	if len(turns) == 0 {
		return func() {}
	}
	m, unseen := c.memory, plan.Unseen
	return func() {
		m.Backfill(capture.History{Turns: turns, Wanted: func(ctx context.Context, turns []ledger.Turn) ([]ledger.Turn, error) {
			sure, err := m.Planner.Sure(ctx, unseen)
			generations := make(map[string]int64, len(sure))
			for _, u := range sure {
				generations[u.Turn.String()] = u.Generation
			}
			list := make([]ledger.Turn, 0, len(sure))
			for _, t := range turns {
				var wanted bool
				if t.Generation, wanted = generations[t.ID]; wanted {
					list = append(list, t)
				}
			}
			return list, err
		}})
	}
}

// ending makes a turn of a request and its answer.
type ending struct {
	s       *Server
	memory  *Memory // as it was when the request came
	who     graphiti.Who
	at      where
	turn    ledger.Turn
	last    [16]byte            // the conversation up to the person's message
	end     dialect.Fingerprint // the conversation as it was sent
	held    dialect.Fingerprint // of the conversation that the provider holds, where it has a name
	chained bool
	work    []byte // what tools did, as it stands in the body
	recall  bool   // the next turn may be prepared for
	awaited bool   // the answer is one that was fetched
}

// take is called when the answer has ended. Only a clean end makes a turn: an
// answer that was cut off, failed, or was left by the client is not one. One
// that calls tools is a round of a turn that goes on.
func (e *ending) take(a dialect.Answer, clean bool) {
	own := *e // the next request may be reading what this one began with
	e = &own
	e.turn.Assistant, e.turn.Answered = a.Text, time.Now()
	switch open := e.memory.Open; {
	case clean && a.End.Final():
		e.finish(a)
	case clean && a.End == dialect.EndUnknown && a.ID != "" && !e.awaited: // in the background: it is fetched later
		e.s.rounds.put(e, a.ID)
		open.Free(&e.turn)
	case clean && a.End == dialect.EndToolCalls:
		e.s.rounds.put(e, a.ID)
		if e.kept() {
			open.Hold(e.turn)
		}
	default:
		open.Free(&e.turn)
		// What is fetched can be fetched again, and an answer whose end was said
		// may stand in the client's history as a whole.
		if e.kept() && e.turn.Kind == "" && !e.awaited && !a.End.Final() {
			contain.Run(e.s.log, "noting an answer that was cut off", e.cutOff)
		}
	}
}

// cutOff notes, over restarts, that the turn is not to be kept as a history
// shows it. This process knows it anyway.
func (e *ending) cutOff() {
	if err := e.memory.CutOff(context.Background(), e.turn); err != nil {
		e.s.log.Warn("an answer that was cut off cannot be noted; a history that shows it may be kept", "error", err)
	}
}

// kept reports whether there is a group that the turn is to be kept in.
func (e *ending) kept() bool { return len(e.turn.Targets) > 0 }

// finish is the end of a turn. What may wait, or fail, comes after what must
// not be lost, and a bug costs its own step only.
func (e *ending) finish(a dialect.Answer) {
	said, answered := e.turn.User, e.turn.Assistant
	// The session first: should the process end between the two, the turn is
	// found again in the next request of the same session, and kept once.
	if e.chained {
		contain.Run(e.s.log, "remembering a session", func() { e.remember(a) })
	}
	if e.kept() {
		contain.Run(e.s.log, "keeping a turn", func() { e.keep(a) })
	}
	if e.recall {
		contain.Run(e.s.log, "remembering a turn for its session", func() {
			e.memory.Planner.Remember(e.who, e.turn.Generation, e.work, said, answered)
		})
		contain.Run(e.s.log, "preparing the next turn", func() {
			e.memory.Planner.Prefetch(e.who, e.turn.Generation, said, answered)
		})
	}
}

// keep has the turn on disk when it returns. Until then what was held of its
// rounds stays held.
func (e *ending) keep(a dialect.Answer) {
	if e.turn.Kind != "" {
		if e.turn.User = summaryIn(a.Text); e.turn.User == "" {
			return // a compaction that only the provider can read
		}
		e.turn.Assistant = ""
	}
	e.turn.Partial = a.End == dialect.EndLength
	if began := e.memory.Open.Began(&e.turn); !began.IsZero() {
		e.turn.Said = began
	}
	err := e.memory.Keep(context.Background(), e.turn)
	if err == nil {
		e.memory.Open.End(&e.turn)
		return
	}
	e.s.log.Warn("a turn cannot be kept", "error", err)
}

// remember notes how the conversation must begin from now on.
func (e *ending) remember(a dialect.Answer) {
	next := [16]byte(e.end)
	if a.Text != "" {
		next = e.end.Link(dialect.RoleAssistant, []byte(a.Text))
	}
	if len(a.Text) >= telling {
		e.memory.Sessions.PutLater(e.at.here.Link(dialect.RoleAssistant, []byte(a.Text)), e.turn.Session)
	}
	for _, id := range []string{a.ID, a.Item} { // it may hold no more than a reference to this answer
		if id == "" {
			continue
		}
		e.memory.Sessions.PutLater(reference(e.at.here, id), e.turn.Session)
		if e.at.here != e.at.base { // it may not even say where it takes place
			e.memory.Sessions.PutLater(reference(e.at.base, id), e.turn.Session)
		}
	}
	if err := e.memory.Sessions.Put(context.Background(), next, e.turn.Session); err != nil {
		e.s.log.Warn("a session cannot be remembered", "error", err)
	}
	e.memory.Sessions.EndPending(e.last)
}

// summaryIn is the summary in a summariser's answer, which may think aloud
// before it.
func summaryIn(answer string) string {
	if _, rest, ok := strings.Cut(answer, "<summary>"); ok {
		answer, _, _ = strings.Cut(rest, "</summary>")
	}
	return strings.TrimSpace(answer)
}

// telling is the length, in bytes, from which an answer alone tells its
// conversation: clients cut off the beginning of long ones.
const telling = 40

// reference is the fingerprint of a reference to what the provider holds.
func reference(root dialect.Fingerprint, id string) dialect.Fingerprint {
	b, _ := json.Marshal(id) // as it stands in a body
	return root.Link(dialect.RoleOther, b)
}

// clientFamily is the client's name, for the description of a memory's source:
// the first word of its User-Agent, without a version.
func clientFamily(agent []byte) string {
	name, _, _ := strings.Cut(string(agent[:min(len(agent), 64)]), " ")
	name, _, _ = strings.Cut(name, "/")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, name)
}

// gitOf is what is known of the repository: what Codex tells (since 0.98), and
// what stands in the repository itself where that is on this machine.
func gitOf(c *call) (g ledger.Git) {
	g.Branch, g.Commit = c.mem.place.Repo.Branch, c.mem.place.Repo.Commit
	if repo := c.says.CodexRepo(c.mem.place.Directory); repo.Commit != "" {
		g.Commit, g.Dirty = repo.Commit, repo.Dirty
	}
	if len(g.Commit) != 40 && len(g.Commit) != 64 || strings.Trim(strings.ToLower(g.Commit), "0123456789abcdef") != "" {
		g.Commit, g.Dirty = "", false
	}
	if len(g.Branch) > 256 || strings.ContainsFunc(g.Branch, func(r rune) bool { return r < ' ' }) {
		g.Branch = ""
	}
	return g
}
