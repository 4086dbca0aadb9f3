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

// planned is what is to be done for a request.
type planned struct {
	plan     inject.Plan
	who      graphiti.Who // of the turn; zero where nothing was planned
	project  project
	late     *project       // of the turn, to be found when it ends; nil: it is known, or not needed
	relax    *dialect.Relax // what is asked of the provider, because a block was lost; nil: nothing
	pending  *pendingTurn   // that the request goes on with, where it does not say so itself
	promises promises       // to be kept when the upstream has accepted the request
}

// ofTheSearch are the reasons that tell what a search came to.
var ofTheSearch = []inject.Reason{inject.ReasonNone, inject.ReasonNothing, inject.ReasonWeak, inject.ReasonVisible, inject.ReasonRoutine}

// plan finds out what is allowed, and plans it.
func (s *decider) plan(ctx context.Context, m *Memory, to *route, now moment, p *parsed, c *caller, at *placed, f *session) (d planned) {
	d.project = s.workspaceOf(m, p, at, f.first)
	d.who, d.promises = c.Who, c.promises
	d.who.Session, d.who.Workspace, d.who.Directory = f.id, d.project.key, d.project.Directory
	d.who.Application, d.who.Program = p.claims.Application()
	mode := s.mode(m, to.replays(), p, c, at, f, &d.project)
	mode.Generation = now.generation
	d.plan = m.Planner.Plan(ctx, p.conv, f.chain, d.who, f.first, mode)
	if d.project.late {
		if len(d.plan.Write) > 0 && f.kind == dialect.KindTurn {
			late := d.project
			d.late = &late
		}
		d.plan.Write, d.plan.Unseen = nil, nil
	}
	if o := &d.plan.Outcome; f.agent && slices.Contains(ofTheSearch, o.Reason) {
		o.Reason = inject.ReasonSubagent // which is why its turns are not kept
	}
	if d.plan.Forgotten && m.DropThinking {
		d.plan.Inserts, d.relax = to.dialect.Info().Relax.Among(d.plan.Inserts, p.text)
	}
	if d.plan.Turn != "" && d.plan.Decided && len(d.plan.Write) > 0 && f.kind == dialect.KindTurn && !p.conv.Answered() {
		if text := string(p.conv.Text(p.conv.Last)); len(text) <= capture.MaxSaying {
			at := d.project
			d.promises.left = time.Until(now.until)
			d.promises.said = capture.Saying{
				Who: d.who, Generation: d.plan.Generation, Turn: d.plan.Turn, Text: text, Typed: p.conv.Typed(p.conv.Last),
				Opens:    p.conv.HeldElsewhere() || !slices.ContainsFunc(p.conv.Messages[:p.conv.Last], func(m dialect.Message) bool { return m.Person }),
				FromFile: func() bool { return s.fromFile(text, &at) },
			}
		}
	}
	return d
}

// commandWait is the most that a request waits for the files of a project's commands.
const commandWait = 20 * time.Millisecond

// fromFile reports whether a message is the content of a command or skill file of a project
// on this machine.
func (s *decider) fromFile(said string, w *project) bool {
	if w.Repo.Dir == "" {
		return false
	}
	return s.commands.Hold(w.Repo.Dir, said, commandWait) || w.Repo.Root != w.Repo.Dir && s.commands.Hold(w.Repo.Root, said, commandWait)
}

// mode is what configuration, person, place and client allow. Of the reasons why
// nothing new is decided, though what was decided is repeated, the first counts.
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
