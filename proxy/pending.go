package proxy

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// pendingTurn is a turn whose answer is not complete yet.
type pendingTurn struct {
	s       *Server
	memory  *Memory // as it was when the request came
	who     graphiti.Who
	at      where
	turn    ledger.Turn
	last    [16]byte            // the conversation up to the person's message
	end     dialect.Fingerprint // the conversation as it was sent
	held    dialect.Fingerprint // of the conversation that the provider holds, where it has a name
	prefill string              // beginning of the answer that the request holds
	before  dialect.Fingerprint // the conversation before the prefill
	chained bool
	work    []byte // what tools did, as it stands in the body
	guessed bool   // it may be no summary that was asked for
	recall  bool   // the next turn may be prepared for
	block   string // that stood before the person's message
	awaited bool   // the answer is one that was fetched

	first firstMessage // of the conversation; zero if a subagent is known to speak
	late  *project     // to be found before the turn is kept; nil: it is known
}

// answered is called when the answer has ended. Only a clean end makes a turn: an
// answer that was interrupted, failed, or was left by the client is not one. One
// that calls tools is a round of a turn that goes on.
func (p *pendingTurn) answered(a dialect.Answer, clean bool) {
	own := *p // the next request may be reading what this one began with
	p = &own
	p.turn.Assistant, p.turn.Answered = a.Text, time.Now()
	wire.Contain(p.s.log, "checking the task of a subagent", p.recheck)
	if p.late != nil && clean {
		wire.Contain(p.s.log, "finding the project of a turn", p.locate)
	}
	switch open := p.memory.Pending; {
	case clean && a.End.Final():
		p.finish(a)
	case a.End == dialect.EndUnknown && a.ID != "" && !p.awaited: // in the background, or a stream that can be resumed
		p.goesOn(a.ID)
		open.Free(&p.turn)
		if !clean {
			p.broke()
			p.lost(observe.LossCutOff)
		}
	case clean && a.End == dialect.EndToolCalls:
		wire.Contain(p.s.log, "storing the calls of an answer", func() { p.openCalls(&a) })
		p.goesOn(a.ID)
		if p.kept() {
			open.Hold(p.turn)
		}
	default:
		open.Free(&p.turn)
		// What is fetched can be fetched again, and an answer whose end was said
		// may stand in the client's history as a whole.
		if !p.awaited && !a.End.Final() {
			p.broke()
		}
		if why := lossOf(a.End, clean); !p.awaited || why == observe.LossFailed || why == observe.LossFiltered {
			p.lost(why)
		}
	}
}

// lossOf returns the reason why an answer with this end is not stored.
func lossOf(end dialect.End, clean bool) observe.Loss {
	switch {
	case end == dialect.EndError:
		return observe.LossFailed
	case end == dialect.EndFilter:
		return observe.LossFiltered
	case !clean:
		return observe.LossCutOff
	}
	return observe.LossNoEnd
}

// lost counts an answer that is not stored, where it was to be.
func (p *pendingTurn) lost(why observe.Loss) {
	if p.kept() && p.turn.Kind == "" {
		p.memory.Figures.Lost(p.who, string(why))
		p.s.observer.Lost(p.turn.Client, why)
	}
}

// unread counts an answer that was given up.
func (p *pendingTurn) unread() { p.lost(observe.LossUnread) }

// broke notes that the turn has no answer so far, where it is to be kept.
func (p *pendingTurn) broke() {
	if p.kept() && p.turn.Kind == "" {
		wire.Contain(p.s.log, "noting an answer that was cut off", p.cutOff)
	}
}

// locate finds the project of a turn whose directory was not read in time. It sets the
// groups of the turn if that project has memory.
func (p *pendingTurn) locate() {
	w := *p.late
	p.late = nil
	repo, ok := p.memory.Identity.Places.Await(w.Directory)
	if !ok {
		p.s.log.Warn("read project directory timed out, turn not kept", "directory", w.Directory)
		return
	}
	w.found(repo)
	if repo.Ignore || p.memory.Rules.refuses(&w) != inject.ReasonNone {
		return
	}
	p.who.Workspace = w.key
	p.turn.Owner, p.turn.Workspace, p.turn.Targets = p.who.Owner(), w.key, p.memory.Planner.Writes(p.who)
}

// cutOff notes, over restarts, that the turn is not to be kept as a history
// shows it. This process knows it anyway.
func (p *pendingTurn) cutOff() {
	if err := p.memory.Turns.CutOff(context.Background(), p.turn); err != nil {
		p.s.log.Warn("an answer that was cut off cannot be noted; a history that shows it may be kept", "error", err)
	}
}

// kept reports whether there is a group that the turn is to be kept in.
func (p *pendingTurn) kept() bool { return len(p.turn.Targets) > 0 }

// finish is the end of a turn. What may wait, or fail, comes after what must
// not be lost, and a bug costs its own step only.
func (p *pendingTurn) finish(a dialect.Answer) {
	said, answered := p.turn.User, p.turn.Assistant
	// The session first: should the process end between the two, the turn is
	// found again in the next request of the same session, and kept once.
	wire.Contain(p.s.log, "remembering a session", func() { p.remember(a) })
	if p.kept() {
		wire.Contain(p.s.log, "keeping a turn", func() { p.keep(a) })
	}
	if p.recall {
		wire.Contain(p.s.log, "remembering a turn for its session", func() {
			p.memory.Planner.Remember(p.who, p.turn.Generation, p.work, said)
		})
		wire.Contain(p.s.log, "preparing the next turn", func() {
			p.memory.Planner.Prefetch(p.who, p.turn.Generation, said, answered)
		})
	}
}

// keep has the turn on disk when it returns. Until then what was held of its
// rounds stays held.
func (p *pendingTurn) keep(a dialect.Answer) {
	if p.turn.Kind != "" {
		if p.guessed && !dialect.ReadsLikeSummary(a.Text) {
			return
		}
		if p.turn.User = dialect.SummaryIn(a.Text); p.turn.User == "" {
			return // a compaction that only the provider can read
		}
		p.turn.Assistant = ""
	}
	p.turn.Partial = a.End == dialect.EndLength
	p.turn.Known = isKnown(p.block, p.turn.User, a.Text)
	if began := p.memory.Pending.Began(&p.turn); !began.IsZero() {
		p.turn.Said = began
	}
	p.s.observer.Kept(p.turn.Kind, p.turn.Client, p.turn.User)
	err := p.memory.Turns.Add(context.Background(), p.turn)
	if err == nil {
		p.memory.Pending.End(&p.turn)
		return
	}
	p.s.log.Warn("a turn cannot be kept", "error", err)
	p.lost(observe.LossStore)
}

// isKnown reports whether a turn says no more than the block that was shown with it: the
// person only asked, of what stands there, and the answer repeats it. A question that
// states something has words that the block does not have: "my cat is called Miso, what
// may she eat?".
func isKnown(block, said, answer string) bool {
	return block != "" && words.OnlyAsks(said) && words.Holds(block, said) && words.Holds(block+"\n"+said, answer)
}

// remember notes what the session is known by from now on, in one write.
func (p *pendingTurn) remember(a dialect.Answer) {
	var by [][16]byte
	if len(a.Text) >= dialect.Telling {
		// A request may hold the session as a transcript, or its summary in place of
		// what was said. Some clients go on with a summary as if the model had said it.
		by = append(by, p.at.person.OfAnswer([]byte(dialect.SummaryIn(a.Text))))
		if p.chained || p.turn.Kind != "" {
			by = append(by, p.at.here.Link(dialect.RoleAssistant, []byte(a.Text)))
		}
	}
	if !p.chained {
		for _, f := range by {
			p.memory.Sessions.PutAsync(f, p.turn.Session)
		}
		return
	}
	if err := p.memory.Sessions.Put(context.Background(), p.turn.Session, p.chain(a, by)...); err != nil {
		p.s.log.Warn("a session cannot be remembered", "error", err)
	}
	p.memory.Sessions.EndPending(p.last)
}

// chain adds how the conversation must begin from now on.
func (p *pendingTurn) chain(a dialect.Answer, by [][16]byte) [][16]byte {
	for _, id := range []string{a.ID, a.Item} { // it may hold no more than a reference to this answer
		if id == "" {
			continue
		}
		by = append(by, p.at.here.Reference(id))
		if p.at.here != p.at.base { // it may not even say where it takes place
			by = append(by, p.at.base.Reference(id))
		}
	}
	if a.Text == "" {
		return append(by, p.end)
	}
	rest := a.Text
	if p.prefill != "" { // the client may join the two, or keep them apart
		by = append(by, p.before.Link(dialect.RoleAssistant, []byte(a.Text)))
		rest = strings.TrimPrefix(rest, p.prefill)
	}
	return append(by, p.end.Link(dialect.RoleAssistant, []byte(rest)))
}

// order is what answers of one conversation have in common: they are reported in
// their order.
func (p *pendingTurn) order() uint64 { return xxhash.Sum64String(p.who.Session) }

// PendingTurns are the turns whose end is awaited. While the provider holds a
// conversation, the request that brings the results of tools does not say to
// which turn they belong, but by a reference.
type PendingTurns = capture.PendingTurns[pendingTurn]

// NewPendingTurns hands a turn to keep when nothing more of it has come for the
// time after.
func NewPendingTurns(after time.Duration, keep func(context.Context, ledger.Turn) error, log *slog.Logger) *PendingTurns {
	return capture.NewPending[pendingTurn](after, keep, log)
}

// goesOn lets requests that refer to the turn's last answer, by its id, or to its
// conversation find the turn.
func (p *pendingTurn) goesOn(answer string) {
	var none dialect.Fingerprint
	var references []dialect.Fingerprint
	if answer != "" {
		references = append(references, p.at.person.Reference(answer))
	}
	if p.held != none {
		references = append(references, p.held)
	}
	if len(references) == 0 {
		return
	}
	round := *p
	round.turn.Assistant = "" // the answer to come is written there
	p.memory.Pending.Refer(&p.turn, round, len(p.turn.User)+len(p.work), references...)
}

// names returns the turn's id and the groups that it is kept in; nothing for a nil turn.
func (p *pendingTurn) names() (turn string, in []graphiti.Target) {
	if p == nil {
		return "", nil
	}
	return p.turn.ID, p.turn.Targets
}

// fetched is the turn whose answer, made in the background, is fetched with this
// request; nil where it is not known.
func (s *Server) fetched(c *call) *pendingTurn {
	if !c.body.Whole || c.memory.Planner == nil || !c.memory.Pending.Referable() { // else the head may still grow a trailer
		return nil
	}
	caller := c.identify()
	if !caller.Known {
		return nil
	}
	p, ok := c.memory.Pending.Find(rootOf(&caller.Who).Reference(c.route.match.ID))
	if !ok {
		return nil
	}
	p.awaited = true
	return &p
}
