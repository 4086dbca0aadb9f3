package proxy

import (
	"context"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// fate decides the fate of a request's newest message, as far as the request shows it: open, if
// its turn may be stored. It is the only function that decides this. An open message gets its
// next fate from settle, a held one from capture.
func (s *decider) fate(r *request, p *parsed, c *caller, at *placed) graphiti.Fate {
	m, f := r.memory, &at.session
	switch no := m.Rules.refuses(&at.project); {
	case r.route.Use != dialect.UseTurn:
		return graphiti.Fate{}
	case no == inject.ReasonOptOut:
		return graphiti.Fate{Name: graphiti.FateOff, Reason: graphiti.OffIgnored}
	case no != inject.ReasonNone && !at.project.late:
		return fateOf(no)
	case !m.Ingest:
		return graphiti.Fate{Name: graphiti.FateOff, Reason: graphiti.OffIngest}
	case c.Off, !p.ingest, c.Temporary, m.Rules.skipsModel(p.conv.Model):
		return graphiti.Fate{Name: graphiti.FateOff, Reason: graphiti.OffOptOut}
	case f.agent, p.conv.Last >= 0 && f.kind == dialect.KindTurn && !p.conv.Answered() && s.isAnswer(p.conv.Raw(p.conv.Newest), &at.where):
		return graphiti.Fate{Name: graphiti.FateClient, Reason: graphiti.ClientSubagent}
	case p.conv.Last < 0 && at.pending == nil:
		return graphiti.Fate{}
	case at.project.late:
		return graphiti.Fate{Name: graphiti.FateLost, Reason: graphiti.LostLate}
	case f.summary:
		return graphiti.Fate{Name: graphiti.FateClient, Reason: string(inject.ReasonSummary)}
	case f.kind != p.conv.Kind && f.kind != dialect.KindTurn: // its session or another turn shows it
		return graphiti.Fate{Name: graphiti.FateAbout, Reason: string(inject.ReasonOf(f.kind))}
	case f.kind != dialect.KindTurn:
		why := string(inject.ReasonOf(f.kind))
		if p.conv.Rule != "" {
			why += ": " + p.conv.Rule
		}
		return graphiti.Fate{Name: graphiti.FateClient, Reason: why}
	case at.pending != nil:
	case f.atOnce && f.why.Reason != graphiti.HeldDoubt:
		return graphiti.Fate{Name: graphiti.FateClient, Reason: graphiti.ClientAtOnce}
	default:
		if _, repeats := p.conv.Repeats(p.conv.Last); repeats {
			return graphiti.Fate{Name: graphiti.FateClient, Reason: graphiti.ClientRepeats}
		}
		if m.Turns.Full(c.Who.Owner()) != "" {
			return graphiti.Fate{Name: graphiti.FateOff, Reason: graphiti.OffQuota}
		}
	}
	return graphiti.Fate{Name: graphiti.FateOpen}
}

// fateAfter returns the fate after the plan: a turn may be stored already, or have no group.
func (d *planned) fateAfter(m *Memory, isTurn bool) graphiti.Fate {
	switch p := &d.plan; {
	case d.fate.Name != graphiti.FateOpen || !isTurn:
	case p.Turn == "":
		return graphiti.Fate{Name: graphiti.FateLost, Reason: graphiti.LostPlan}
	case len(p.Write) == 0:
		return graphiti.Fate{Name: graphiti.FateOff, Reason: graphiti.OffIngest}
	case m.Turns.Kept(p.Turn, p.Write):
		return graphiti.Fate{Name: graphiti.FateStored}
	}
	return d.fate
}

// fateOf returns the fate of the messages of a request that is refused for a reason.
func fateOf(no inject.Reason) graphiti.Fate {
	f := graphiti.Fate{Name: graphiti.FateOff, Reason: string(no)}
	switch no {
	case inject.ReasonNone:
		f.Reason = graphiti.OffBackend
	case inject.ReasonNobody:
		f.Name = graphiti.FateNobody
	case inject.ReasonPlace:
		f.Name = graphiti.FatePlace
	case inject.ReasonNoUserMessage:
		f.Name = graphiti.FateClient
	case inject.ReasonEncoding, inject.ReasonTooLarge, inject.ReasonBusy:
		f.Name = graphiti.FateLost
	}
	return f
}

// mayWrite reports whether a request with this fate may write: of a client's requests, only
// summaries do.
func mayWrite(f graphiti.Fate) bool {
	switch f.Name {
	case graphiti.FateNone, graphiti.FateOpen, graphiti.FateAbout:
		return true
	case graphiti.FateClient:
		return f.Reason != graphiti.ClientSubagent && f.Reason != graphiti.ClientAtOnce
	case graphiti.FateLost: // a later request may show the message
		return f.Reason == graphiti.LostLate
	}
	return false
}

// isLeftOut reports whether the person or the client keeps a message out of memory. Imports
// check the project's rules themselves.
func isLeftOut(f graphiti.Fate) bool {
	switch f.Reason {
	case graphiti.OffOptOut, graphiti.ClientAtOnce, graphiti.AboutMemory:
		return true
	}
	return false
}

// reads reports whether the answer must be read.
func (d *decision) reads(r *request) bool {
	p := &d.plan
	return r.route.Use == dialect.UseTurn && p.Turn != "" &&
		(len(p.Write) > 0 || isLeftOut(d.fate) || d.child || !d.session.byID || d.pending != nil) && !r.memory.Turns.Kept(p.Turn, p.Write)
}

// settle sets the fate of the turn's message, if it is open.
func (p *pendingTurn) settle(f graphiti.Fate) {
	if p.fate.Name != graphiti.FateOpen || p.turn.Kind != "" || f.Name == graphiti.FateOpen {
		return
	}
	p.fate = p.s.count(p.memory, &p.who, p.at.base, &p.turn, graphiti.FateOpen, f)
	p.seen.Settled(p.fate)
}

// count counts the new fate of a turn's message, and returns it. A message that another request has
// stored, such as a retry, is not lost, and is counted already.
func (s *Server) count(m *Memory, who *graphiti.Who, base dialect.Fingerprint, t *ledger.Turn, was graphiti.FateName, f graphiti.Fate) graphiti.Fate {
	counted := f
	if f.Name == graphiti.FateLost && (m.Turns.Kept(t.ID, t.Targets) || m.Turns.Kept(capture.BeginningOf(t.ID), t.Targets)) {
		f, counted = graphiti.Fate{Name: graphiti.FateStored}, graphiti.Fate{}
	}
	lost := s.noteLost(sessionOf{base, who.Session}, t.ID, f.Name == graphiti.FateLost)
	if was != graphiti.FateNone {
		s.observer.Message(t.Client, lost, graphiti.Fate{})
		lost = was
	}
	s.observer.Message(t.Client, lost, counted)
	if counted.Name == graphiti.FateLost {
		m.Figures.Lost(*who, counted.Reason)
	}
	return f
}

// noteLost notes whether the message of a turn is lost, and returns FateLost if it was. The client
// may send a lost message again, or show it in a history.
func (s *decider) noteLost(of sessionOf, turn string, isLost bool) (was graphiti.FateName) {
	if wasLost := slices.Contains(s.lostIn(of.base, of.session), turn); wasLost {
		was = graphiti.FateLost
	} else if !isLost {
		return was
	}
	s.memo.Update(lostKey(of.base, of.session), func(was any) (any, int) {
		turns, _ := was.([]string)
		turns = slices.DeleteFunc(slices.Clone(turns), func(id string) bool { return id == turn })
		if isLost {
			turns = append(turns, turn)
		}
		return turns, 64 * len(turns)
	})
	return was
}

// countNew counts the new messages of a request, as far as it shows their fates.
func (s *Server) countNew(c *call, d *decision) {
	t := ledger.Turn{ID: d.plan.Turn, Targets: d.plan.Write, Client: d.who.Program}
	if d.opened = d.fate.Name == graphiti.FateOpen; d.opened || d.fate.Reason == graphiti.LostLate {
		s.count(c.memory, &d.who, d.base, &t, graphiti.FateNone, d.fate)
	} else if d.fate.Name != graphiti.FateStored { // it was counted when it was stored
		s.observer.Message(t.Client, graphiti.FateNone, d.fate)
	}
	for _, e := range d.earlier {
		if e.fate == graphiti.FateClient {
			t.ID = e.Turn.String()
			s.count(c.memory, &d.who, d.base, &t, graphiti.FateNone, graphiti.Fate{Name: e.fate, Reason: graphiti.HeldHistory})
		}
	}
}

// unanswered settles the new messages of a request without an answer: they are lost, until the client
// sends them again. status is 0 after a panic.
func (s *Server) unanswered(c *call, status int, d *decision) {
	if !d.opened || status != 0 && status < fasthttp.StatusBadRequest {
		return
	}
	f := graphiti.Fate{Name: graphiti.FateLost, Reason: graphiti.LostFailed}
	if status == statusGone {
		f.Reason = graphiti.LostCutOff
	}
	t := ledger.Turn{ID: d.plan.Turn, Targets: d.plan.Write, Client: d.who.Program}
	newest := s.count(c.memory, &d.who, d.base, &t, graphiti.FateOpen, f)
	for i := range d.earlier {
		if e := &d.earlier[i]; e.fate == graphiti.FateOpen || e.fate == graphiti.FateHeld { // none was held without an answer
			t.ID = e.Turn.String()
			e.fate = s.count(c.memory, &d.who, d.base, &t, graphiti.FateNone, f).Name
		}
	}
	newest.Earlier = d.earlier.fates()
	c.seen.Settled(newest)
}

func lostKey(base dialect.Fingerprint, session string) memo.Key {
	return keyOf(base.Link(dialect.RoleOther, []byte(session)), lostName)
}

// lostIn returns the turns of a session with lost messages.
func (s *decider) lostIn(base dialect.Fingerprint, session string) []string {
	turns, _ := s.memo.Get(lostKey(base, session)).([]string)
	return turns
}

// lost settles a turn that should have been stored, but is not.
func (p *pendingTurn) lost(why string) { p.settle(graphiti.Fate{Name: graphiti.FateLost, Reason: why}) }

// isNew reports whether a request has a new message, unlike a tool round.
func (d *decision) isNew(r *request) bool {
	return r.route.Use == dialect.UseTurn && d.pending == nil && (d.parsed.conv == nil || !d.parsed.conv.Answered())
}

// lossOf returns the reason for not storing an answer with this end.
func lossOf(end dialect.End, clean bool) string {
	switch {
	case end == dialect.EndError:
		return graphiti.LostFailed
	case end == dialect.EndFilter:
		return graphiti.LostFiltered
	case !clean:
		return graphiti.LostCutOff
	}
	return graphiti.LostNoEnd
}

// unread counts an answer that its reader dropped.
func (p *pendingTurn) unread() { p.lost(graphiti.LostUnread) }

// broke calls cutOff for a turn that should have been stored.
func (p *pendingTurn) broke() {
	if p.kept() && p.turn.Kind == "" {
		wire.Contain(p.s.log, "noting an answer that was cut off", p.cutOff)
	}
}

// cutOff notes that a later history or transcript must not be used to store this turn. The
// note survives a restart; this process knows the turn anyway.
func (p *pendingTurn) cutOff() {
	if err := p.memory.Turns.CutOff(context.Background(), p.turn); err != nil {
		p.s.log.Warn("note a turn failed, it may be stored from a later history", "error", err)
	}
}
