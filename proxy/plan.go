package proxy

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// planned is the plan for a request.
type planned struct {
	plan     inject.Plan
	who      graphiti.Who // of the turn; zero without a plan
	project  project
	late     *project       // the turn's project, found at its end; nil if known or not needed
	relax    *dialect.Relax // the option for the provider after a forgotten block; nil if none
	pending  *pendingTurn   // the turn that a request without a person's message continues
	promises promises       // actions that wait until the upstream accepts the request
}

// ofTheSearch are the reasons that result from a search.
var ofTheSearch = []inject.Reason{inject.ReasonNone, inject.ReasonNothing, inject.ReasonWeak, inject.ReasonVisible, inject.ReasonRoutine}

// plan plans the memory of a request, within the mode that is allowed.
func (s *decider) plan(ctx context.Context, m *Memory, to *route, now moment, p *parsed, c *caller, at *placed, f *session) (d planned) {
	d.project = s.workspaceOf(m, p, at, f.first)
	d.who, d.promises = c.Who, c.promises
	d.who.Session, d.who.Workspace, d.who.Directory = f.id, d.project.key, d.project.Directory
	if d.project.key == "" {
		d.who.Application, d.who.Program = p.claims.Application()
	}
	mode := s.mode(m, to.replays(), p, c, at, f, &d.project)
	mode.Generation = now.generation
	d.plan = m.Planner.Plan(ctx, p.conv, f.chain, d.who, f.first && p.conv.Opens(), mode)
	if d.project.late {
		if len(d.plan.Write) > 0 && f.kind == dialect.KindTurn {
			late := d.project
			d.late = &late
		}
		d.plan.Write, d.plan.Unseen = nil, nil
	}
	if o := &d.plan.Outcome; f.agent && slices.Contains(ofTheSearch, o.Reason) {
		o.Reason = inject.ReasonSubagent // subagents' turns are not stored
	}
	if d.plan.Forgotten && m.DropThinking {
		d.plan.Inserts, d.relax = to.dialect.Info().Relax.Among(d.plan.Inserts, p.text)
	}
	if d.plan.Turn != "" && d.plan.Decided && len(d.plan.Write) > 0 && f.kind == dialect.KindTurn && !p.conv.Answered() {
		_, repeats := p.conv.Repeats(p.conv.Last)
		if text := string(p.conv.Text(p.conv.Last)); !repeats && len(text) <= capture.MaxSaying {
			project, typed := d.project, p.conv.Typed(p.conv.Last) && !s.byModel(p.conv, &at.where)
			d.promises.left = time.Until(now.until)
			d.promises.said = capture.Saying{
				Who: d.who, Generation: d.plan.Generation, Turn: d.plan.Turn, Text: text, Typed: typed,
				Opens:    p.conv.HeldElsewhere() || !slices.ContainsFunc(p.conv.Messages[:p.conv.Last], func(m dialect.Message) bool { return m.Person }),
				FromFile: func() bool { return s.fromFile(text, &project) },
			}
		}
	}
	return d
}

// commandWait is the longest time that a request waits for a project's command files.
const commandWait = 20 * time.Millisecond

// fromFile reports whether a message is the content of a command or skill file of a project
// on this machine.
func (s *decider) fromFile(said string, w *project) bool {
	if w.Repo.Dir == "" {
		return false
	}
	return s.commands.Hold(w.Repo.Dir, said, commandWait) || w.Repo.Root != w.Repo.Dir && s.commands.Hold(w.Repo.Root, said, commandWait)
}

// mode returns the mode that configuration, person, place and client allow. If there are
// several reasons against a new block, the first one counts. Earlier blocks are repeated
// even then.
func (s *decider) mode(m *Memory, replays bool, p *parsed, c *caller, at *placed, f *session, w *project) (mode inject.Mode) {
	mode.Beside = f.kind
	if c.Off || w.Repo.Ignore || m.Rules.skipsModel(p.conv.Model) {
		mode.Reason = inject.ReasonOptOut
		return mode
	}
	if mode.Reason = m.Rules.refuses(w); mode.Reason != inject.ReasonNone {
		return mode
	}
	if !p.recall {
		mode.Reason = inject.ReasonOptOut
	}
	if !p.recall && !p.ingest {
		return mode
	}
	mode.Recall, mode.Nobody, mode.Replay = p.recall && m.Recall, c.promises.stranger, replays
	if mode.Late = w.late && mode.Recall; mode.Late {
		mode.Recall = false
	}
	mode.Ingest = p.ingest && m.Ingest && !c.Temporary && !f.agent && (f.kind != dialect.KindTurn || !s.isTemplate(at.person, f.id, p.conv))
	return mode
}
