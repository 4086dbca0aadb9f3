package proxy

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// reader returns the tee for a copy of the answer, and the number of the request's bytes
// that it holds; nil if the answer is not needed. The answer to a turn that is not stored
// may still be needed, to recognize the rest of the conversation.
func (s *Server) reader(c *call, head *wire.AnswerHead, d *decision) (tee wire.Tee, held int) {
	wire.Contain(s.log, "reading an answer", func() {
		var t *response.Tee
		if t, held = s.startReader(c, head, d); t != nil {
			tee = t
		}
	})
	return tee, held
}

func (s *Server) startReader(c *call, head *wire.AnswerHead, d *decision) (tee *response.Tee, held int) {
	if head.Status != fasthttp.StatusOK {
		return nil, 0
	}
	meta := response.Meta{Encoding: strings.ToLower(string(head.Encoding))}
	if c.route.Fetched != nil {
		if p := s.fetched(c); p != nil {
			meta.Order, meta.Lost = orderOf(p.who.Session), p.unread
			return c.memory.Responses.Read(c.route.Fetched.NewReader(""), meta, p.answered), 0
		}
	}
	if d.plan.Outcome.Forgets {
		d.plan.Write = nil // the turn would repeat the fact that it made the memory forget
		d.fate = graphiti.Fate{Name: graphiti.FateAbout, Reason: graphiti.AboutMemory}
	}
	if !d.reads(&c.request) {
		if d.opened && c.memory.Turns.Kept(d.plan.Turn, d.plan.Write) { // by another request, meanwhile
			s.observer.Message("", graphiti.FateOpen, graphiti.Fate{})
			c.seen.Settled(graphiti.Fate{Name: graphiti.FateStored})
		}
		return nil, 0
	}
	if len(d.plan.Write) > 0 {
		c.sawProvider(d.who.Owner())
	}
	p, backfill, held := s.pendingTurn(c, d)
	meta.Order, meta.Lost, meta.Of = orderOf(p.who.Session), p.unread, p.referredBy()
	tee = c.memory.Responses.Read(d.parsed.dialect.NewReader(d.parsed.conv.Prefill()), meta, callback(p, d.blockTokens(), s.spends(c), d.parsed.conv.Threaded(), c.seen.Read()))
	backfill()
	if tee == nil {
		c.seen.Unread()
		p.lost(graphiti.LostEncoding)
	}
	return tee, held
}

// callback returns the function to call with an answer after it was read. In a thread, the next
// request names the answer by its first key. used has the tokens of blocks,
// and spend takes all of them from the rates.
func callback(p *pendingTurn, used graphiti.Usage, spend func(tokens int), threaded bool, read observe.Request) func(dialect.Answer, bool) {
	p.seen = read
	return func(a dialect.Answer, clean bool) {
		read.Report(&a)
		used.Input, used.Cached, used.Output = int64(a.Usage.Input), int64(a.Usage.Cached), int64(a.Usage.Output)
		p.memory.Figures.Used(p.who, read.Model(), &used)
		spend(a.Usage.Input + a.Usage.Output)
		if threaded && len(a.Keys) > 0 {
			a.ID = a.Keys[0]
		}
		p.answered(a, clean)
	}
}

// blockTokens estimates the tokens of the blocks in a request.
func (d *decision) blockTokens() (u graphiti.Usage) {
	for i := range d.plan.Inserts {
		u.Repeated += int64(len(d.plan.Inserts[i].Text)) / bytesPerToken
	}
	if d.plan.Decided {
		u.New = min(u.Repeated, int64(len(d.plan.Block))/bytesPerToken)
	}
	u.Repeated -= u.New
	return u
}

// bytesPerToken is the average length of a token in JSON.
const bytesPerToken = 4

// pendingTurn returns the turn of a request, and a function that records earlier turns
// that were not stored: it must be called once the upstream has accepted the request, after callback.
// held is the number of bytes that were copied, because the request's buffers are reused.
func (s *Server) pendingTurn(c *call, d *decision) (p *pendingTurn, backfill func(), held int) {
	p, backfill = d.pending, func() {}
	if p != nil && len(d.session.chain) > 0 {
		p.goesOnIn(d)
	}
	if p == nil {
		p, held = s.newPending(c, d)
		if len(d.earlier) > 0 {
			var more int
			backfill, more = s.backfill(c, d, &p.seen)
			held += more
		}
	}
	if (p.recall || p.child) && c.memory.Note.Work {
		p.read, p.round = d.parsed.dialect, d.parsed.conv.Round()
		held += len(p.round)
	}
	if len(p.turn.Targets) > 0 {
		c.memory.Pending.Busy(&p.turn)
	}
	return p, backfill, held
}

// goesOnIn makes an open turn the turn of a request that shows its conversation.
func (p *pendingTurn) goesOnIn(d *decision) {
	conv := d.parsed.conv
	p.end, p.sequel = d.session.chain[len(conv.Messages)-1], d.session.sequel
	p.answers, p.instructed = answersBefore(conv, len(conv.Messages)), conv.Instructed()
}

// newPending returns a turn that begins with the request.
func (s *Server) newPending(c *call, d *decision) (p *pendingTurn, held int) {
	conv, chain := d.parsed.conv, d.session.chain
	p = &pendingTurn{
		s:       s,
		memory:  c.memory,
		who:     d.who,
		at:      d.where,
		end:     chain[len(chain)-1],
		own:     d.session.own,
		turn:    s.turn(c, d, d.plan.Turn, d.plan.Generation),
		chained: !d.session.byID || d.caller.SessionOfPrompt(), // a compaction may have another prompt, and so another id
		recall:  d.plan.Recall,
		block:   d.plan.Block,
		repo:    d.project.Repo,
		fate:    d.fate,
	}
	d.session.witness(conv)
	p.turnOwner = d.session.turnOwner
	p.edited, p.follows = s.editedAway(conv, chain, d.who.Session, d.root)
	if p.prefill = strings.TrimSpace(conv.Prefill()); p.prefill != "" {
		p.before = chain[len(chain)-2]
	}
	if id := conv.Field(dialect.FieldConversation); id != nil {
		p.held = d.person.Link(dialect.RoleOther, id)
	}
	if d.session.kind == dialect.KindSummary {
		p.turn.Kind, p.chained, p.guess = graphiti.KindSessionSummary, false, conv.Guessed || p.guess
		return p, 0
	}
	p.turn.User, p.turn.Model = string(conv.Text(conv.Last)), c.seen.Model()
	p.turn.Asked = p.held != (dialect.Fingerprint{}) || asked(conv, conv.Last)
	if d.session.summary {
		p.turn.User = ""
	}
	if same, ok := conv.Repeats(conv.Last); ok {
		p.turn.User, p.repeats = "", string(same)
	}
	held = len(p.turn.User) + len(p.repeats)
	p.child = d.child
	p.recall = p.recall && len(d.plan.Write) > 0
	return p, held
}

// asked reports whether the model's messages directly before a message contain a question.
func asked(conv *dialect.Conversation, message int) bool {
	for i := message - 1; i >= 0 && !conv.Messages[i].Person; i-- {
		if conv.Messages[i].Role == dialect.RoleAssistant && words.HasQuestion(string(conv.Text(i))) {
			return true
		}
	}
	return false
}

// turn returns a turn of the conversation without its messages.
func (s *Server) turn(c *call, d *decision, id string, generation int64) ledger.Turn {
	provider, _ := c.provider()
	t := ledger.Turn{
		ID:      id,
		Session: d.who.Session,
		Owner:   d.who.Owner(),
		Said:    d.arrived,

		Workspace: d.who.Workspace,
		Client:    d.who.Program,
		Targets:   d.plan.Write,

		Generation: generation,
		Provider:   provider,
		Trace:      c.seen.Parent(),
	}
	if d.who.Workspace == "" {
		t.Place = d.who.Place()
	}
	if c.memory.Note.Git {
		t.Git = gitOf(d.parsed.claims, &d.project)
	}
	return t
}

// earlierMessages are the earlier messages without a stored turn: open, the client's or held.
type earlierMessages []earlierMessage

type earlierMessage struct {
	inject.Unseen
	fate graphiti.FateName
}

// fates returns the number of messages for each of their fates.
func (e earlierMessages) fates() string {
	var list []string
	for _, f := range graphiti.Fates {
		if n := len(e) - len(slices.DeleteFunc(slices.Clone(e), func(m earlierMessage) bool { return m.fate == f })); n > 0 {
			list = append(list, fmt.Sprintf("%s=%d", f, n))
		}
	}
	return strings.Join(list, " ")
}

// earlierMessages returns the earlier messages of a decision. A history that the client has begun
// itself, or that begins another conversation as well, is the client's. A message before the next
// one of the person, without an answer between, is an open turn.
func (s *decider) earlierMessages(m *Memory, d *decision) earlierMessages {
	conv, known, write := d.parsed.conv, m.Turns, d.plan.Write
	if d.session.kind == dialect.KindSummary || d.pending != nil || len(write) == 0 {
		return nil
	}
	list := make(earlierMessages, 0, len(d.plan.Unseen))
	for _, u := range d.plan.Unseen {
		id := u.Turn.String()
		answer, ended := conv.AnswerTo(u.Message)
		same, repeats := conv.Repeats(u.Message)
		if ended && known.Known(u.Turn) || !ended && (known.Kept(id, write) || known.Kept(capture.BeginningOf(id), write)) {
			continue
		}
		list = append(list, earlierMessage{u, graphiti.FateOpen})
		if u.Waits {
			list[len(list)-1].fate = graphiti.FateHeld
		}
		if conv.Prepared() || s.sharesBeginning(d) || conv.AsksForSummary(u.Message) ||
			ended && (answer == nil || repeats && bytes.Equal(answer, same)) || !ended && (repeats || s.byModel(conv.Text(u.Message), &d.where)) {
			list[len(list)-1].fate = graphiti.FateClient
		}
	}
	return list
}

// backfill returns a function that records earlier turns of the history, and the number
// of bytes that it holds. Such turns are older than the first request of the conversation,
// or were lost in a crash. Their times are unknown: they get times shortly before now, in
// their order. seen, which the function reads, gets their fates.
func (s *Server) backfill(c *call, d *decision, seen *observe.Request) (record func(), held int) {
	conv := d.parsed.conv
	var turns []ledger.Turn
	var of []int // indexes of turns in d.earlier
	for i, u := range d.earlier {
		if u.fate == graphiti.FateClient {
			continue
		}
		answer, ended := conv.AnswerTo(u.Message)
		t := s.turn(c, d, u.Turn.String(), u.Generation)
		t.Backfill, t.Open = true, !ended
		if _, repeats := conv.Repeats(u.Message); !repeats {
			t.User = string(conv.Text(u.Message))
		}
		t.Asked = asked(conv, u.Message)
		if ended { // else the process that saw the rounds stores their texts
			t.Assistant = string(answer)
		}
		t.Said = t.Said.Add(time.Duration(i-len(d.earlier)) * 2 * time.Millisecond)
		t.Answered = t.Said.Add(time.Millisecond)
		turns, of = append(turns, t), append(of, i)
		held += len(t.User) + len(t.Assistant)
	}
	if len(turns) == 0 {
		return func() {}, 0
	}
	m, earlier, repo, who := c.memory, slices.Clone(d.earlier), d.project.Repo, d.who
	base, why := d.base, capture.Doubt{Reason: graphiti.HeldHistory, With: d.session.chain[conv.Last]}
	record = func() {
		m.Turns.Backfill(capture.History{Turns: turns, Wanted: func(ctx context.Context, turns []ledger.Turn, stored []bool) ([]ledger.Turn, error) {
			list := make([]ledger.Turn, 0, len(turns))
			isOurs := slices.Contains(stored, true) // the session's, without decisions: Postgres was down
			for i, t := range turns {
				t.User = cmp.Or(s.commands.Words(&repo, t.User, commandRead), t.User)
				fate, e := graphiti.Fate{Name: graphiti.FateStored}, &earlier[of[i]]
				var err error
				if !e.Waits || isOurs {
					list = append(list, t)
				} else if fate, err = m.Doubts.Hold(ctx, t, &why); err != nil {
					return nil, err
				}
				e.fate = s.count(m, &who, base, &t, graphiti.FateNone, fate).Name
			}
			seen.Settled(graphiti.Fate{Earlier: earlier.fates()})
			return list, nil
		}})
	}
	return record, held
}

// gitOf returns the branch of a repository on this machine, and the state that Codex reports
// (since 0.98).
func gitOf(claims *identity.Claims, at *project) ledger.Git {
	repo := claims.CodexRepo(at.Directory)
	return ledger.Git{Branch: at.Repo.Branch, Commit: repo.Commit, Dirty: repo.Dirty}.Valid()
}
