package proxy

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// maxHistory bounds the messages among which a turn looks for held turns.
const maxHistory = 128

// pendingTurn is a turn without a complete answer.
type pendingTurn struct {
	s       *Server
	memory  *Memory // the settings when the request arrived
	who     graphiti.Who
	at      where
	turn    ledger.Turn
	end     dialect.Fingerprint // the conversation in the request
	own     string              // the session of the conversation itself; a subagent's turn has its parent's
	held    dialect.Fingerprint // of the conversation object at the provider, if there is one
	prefill string              // beginning of the answer, given in the request
	before  dialect.Fingerprint // the conversation before the prefill
	chained bool
	round   []byte // the request's tool round, from dialect.Conversation.Round; or nil
	read    dialect.Dialect
	calls   []dialect.Call // of the answer before, if the request may hold only their results
	child   bool           // a subagent's turn, for its parent's notes
	recall  bool           // a recall for the next turn may be prepared
	block   string         // the memory block before the person's message
	repeats string         // the previous answer, if a program repeats the message; empty otherwise
	awaited bool           // the answer was fetched by another request

	turnOwner
	edited  []sentTurn          // turns that the person has replaced; see edited.go
	follows dialect.Fingerprint // the conversation up to the person's message before

	fate graphiti.Fate // of the person's message
	seen observe.Request

	repo workspace.Repo // of the project
}

// answered is called at the end of the answer. Only an answer with a clean end completes
// a turn: an answer that was interrupted, failed, or was abandoned by the client does
// not. An answer that calls tools is a round of a turn that continues.
func (p *pendingTurn) answered(a dialect.Answer, clean bool) {
	own := *p // the next request may be reading the original
	p = &own
	p.turn.Assistant, p.turn.Answered, p.turn.Keys = a.Text, time.Now(), a.Keys
	wire.Contain(p.s.log, "checking the task of a subagent", p.recheck)
	var done inject.Done
	noted := p.round != nil && (p.recall || p.child)
	if noted {
		wire.Contain(p.s.log, "reading a tool round", func() { done = p.work() })
	}
	if p.kept() && p.turn.User != "" {
		p.turn.User = cmp.Or(p.s.commands.Words(&p.repo, p.turn.User, commandRead), p.turn.User)
	}
	if clean && (a.End.Final() || a.End == dialect.EndToolCalls) && isLeftOut(p.fate) && !p.kept() { // each round: a transcript may have more messages in the turn
		own := *p
		own.turn.Targets = p.memory.Planner.Writes(p.who)
		wire.Contain(p.s.log, "noting a turn without memory", own.cutOff)
	}
	switch open := p.memory.Pending; {
	case clean && a.End.Final():
		p.finish(a)
	case a.End == dialect.EndUnknown && a.ID != "" && !p.awaited: // in the background, or a stream that can be resumed
		p.goesOn(a.ID)
		open.Free(&p.turn)
		if !clean {
			p.broke()
			p.lost(graphiti.LostCutOff)
		}
	case clean && a.End == dialect.EndToolCalls:
		wire.Contain(p.s.log, "storing the calls of an answer", func() { p.openCalls(&a) })
		if p.calls = nil; a.Calls != nil {
			p.calls = a.Calls.Made.Calls
		}
		p.goesOn(a.ID)
		if p.kept() && p.turn.Kind == "" {
			wire.Contain(p.s.log, "noting an open turn", p.noteOpen)
			wire.Contain(p.s.log, "keeping a statement", p.keepStatement)
			open.Hold(p.turn)
		}
	default:
		open.Free(&p.turn)
		// The client can fetch a background answer again. An answer that reported its
		// end may be complete in the client's history.
		if !p.awaited && !a.End.Final() {
			p.broke()
		}
		if why := lossOf(a.End, clean); !p.awaited || why == graphiti.LostFailed || why == graphiti.LostFiltered {
			p.lost(why)
		}
	}
	if p.sequel != nil && p.kept() {
		wire.Contain(p.s.log, "storing a summary", p.confirm)
	}
	if noted { // it may wait, so it comes last
		wire.Contain(p.s.log, "noting a tool round", func() { p.memory.Planner.Worked(p.who, p.turn.Generation, &done) })
	}
}

// work reads the tool round of the request.
func (p *pendingTurn) work() inject.Done {
	w := dialect.ReadRound(p.read, p.round)
	if w.Calls == nil { // the provider holds them
		w.Calls = p.calls
	}
	d := p.memory.Planner.Read(&inject.Round{Directory: p.at.place.Directory, Calls: w.Calls, Results: w.Results})
	d.IsList = d.IsList && !p.child // the list of a subagent is not the session's
	p.turn.AddWork(d.Lines)
	return d
}

// kept reports whether there is a group to store the turn in.
func (p *pendingTurn) kept() bool { return len(p.turn.Targets) > 0 }

// finish ends a turn. The steps that may wait or fail come last, and a panic in one step
// does not prevent the others.
func (p *pendingTurn) finish(a dialect.Answer) {
	said, answered := p.turn.User, p.turn.Assistant
	// The session comes first: the next request may be arriving, and needs it.
	wire.Contain(p.s.log, "remembering a session", func() {
		if p.turn.Kind == "" && !p.child {
			p.s.changeNote(sessionOf{p.at.base, p.who.Session}, func(n *sessionNote) { n.answered = p.turn.Answered })
		}
		p.remember(a)
	})
	if p.turn.Kind == "" {
		wire.Contain(p.s.log, "storing an answer as a text of the model", func() { p.wroteAnswer(a.Text) })
	}
	if p.kept() {
		isKept := p.turn.Kind == ""
		if isKept {
			p.began()
		} else {
			wire.Contain(p.s.log, "reading a summary", func() {
				if isKept = p.isSummary(a.Text); isKept {
					p.summarize(a.Text)
				}
			})
		}
		wire.Contain(p.s.log, "noting an answer", func() { p.noteAnswer(said, answered) })
		if isKept {
			wire.Contain(p.s.log, "keeping a turn", func() { p.keep(a) })
		}
	}
	if p.child {
		wire.Contain(p.s.log, "remembering a subagent", func() {
			p.endTask()
			p.memory.Planner.Remember(p.who, p.turn.Generation, inject.Ended{By: inject.ByAgent, Said: said, Answered: answered})
		})
	}
	if p.recall {
		wire.Contain(p.s.log, "remembering a turn for its session", func() {
			p.memory.Planner.Remember(p.who, p.turn.Generation, inject.Ended{Said: said})
		})
	}
}

// began sets the time of the turn to that of its first round, and adds the work of earlier rounds.
func (p *pendingTurn) began() {
	began, earlier := p.memory.Pending.Began(&p.turn)
	if !began.IsZero() {
		p.turn.Said = began
	}
	last := p.turn.Work
	p.turn.Work = earlier
	p.turn.AddWork(last)
}

// isSummary reports whether an answer has a summary to store. Only the provider can read some.
func (p *pendingTurn) isSummary(answer string) bool {
	return (!p.guess || dialect.ReadsLikeSummary(answer)) && dialect.SummaryIn(answer) != ""
}

// summarize makes the summary in the answer the text of the turn.
func (p *pendingTurn) summarize(answer string) {
	p.turn.User, p.turn.Assistant = dialect.SummaryIn(answer), ""
	p.memory.Planner.Remember(p.who, p.turn.Generation, inject.Ended{By: inject.ForSummary, Answered: p.turn.User})
}

// keep writes the turn to disk before it returns. Only then does it release the turn's
// rounds.
func (p *pendingTurn) keep(a dialect.Answer) {
	stored := p.turn.Kind == "" && p.memory.Turns.Kept(p.turn.ID, p.turn.Targets)
	if stored { // by another request with the message, so it counts no more
		p.lost(graphiti.LostStore)
	}
	if stored || p.repeats != "" && strings.TrimSpace(a.Text) == p.repeats {
		p.memory.Pending.End(&p.turn) // both texts are stored
		return
	}
	if p.turn.User != "" && !p.noteSaid() {
		p.turn.User = ""
		p.settle(graphiti.Fate{Name: graphiti.FateAbout, Reason: graphiti.AboutTwin})
	}
	p.turn.Known = isKnown(p.block, p.turn.User, a.Text)
	err := p.add(a.Text)
	if err == nil {
		p.settle(graphiti.Fate{Name: graphiti.FateStored})
		p.memory.Pending.End(&p.turn)
		return
	}
	p.s.log.Warn("store turn failed", "error", err)
	p.lost(graphiti.LostStore)
}

// keepStatement stores a statement before its turn ends, if the person stopped the turn before:
// they may stop this one as well.
func (p *pendingTurn) keepStatement() {
	if !p.stopped || p.fate.Name != graphiti.FateOpen || p.why.Reason == graphiti.HeldDoubt || !words.States(p.turn.User) {
		return
	}
	t := p.turn
	t.Assistant, t.Open = "", true
	if err := p.memory.Turns.Add(context.Background(), t); err != nil {
		p.s.log.Warn("store a message failed", "error", err)
		return
	}
	p.settle(graphiti.Fate{Name: graphiti.FateStored})
}

// add stores the turn, or holds it if it may be no turn.
func (p *pendingTurn) add(answer string) error {
	if p.turn.Kind != "" {
		return p.memory.Turns.Add(context.Background(), p.turn)
	}
	why := p.why
	if why.Reason != graphiti.HeldDoubt && isTitle(p.about, p.turn.User, answer) {
		why.Reason = graphiti.HeldTitle
	}
	if why.Reason != graphiti.HeldTwin {
		why.Twin = capture.Twin{}
	}
	isTurn := why.Reason == "" || why.Reason == graphiti.HeldTwin
	p.memory.Doubts.GoesOn(p.who.Session, p.history, isTurn)
	if isTurn {
		p.quotable()
		p.sent()
		p.endTurns(p.withFollowing(append(p.edited, p.versions()...)), graphiti.AboutReplaced)
	}
	if why.Reason == "" {
		p.memory.Doubts.Twin(&p.why.Twin, true)
		return p.memory.Turns.Add(context.Background(), p.turn)
	}
	fate, err := p.memory.Doubts.Hold(context.Background(), p.turn, &why)
	if err == nil {
		p.settle(fate)
	}
	return err
}

// isKnown reports whether a turn only repeats the memory block before it: the person only
// asked about facts in the block, and the answer has only words of the block and question.
// A question that also states a fact has words that are not in the block: "my cat is
// called Miso, can she eat cheese?".
func isKnown(block, said, answer string) bool {
	return block != "" && words.OnlyAsks(said) && words.Holds(block, said) && words.Holds(block+"\n"+said, answer)
}
