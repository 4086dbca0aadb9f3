package proxy

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// planned is what is to be done for a request.
type planned struct {
	plan     inject.Plan
	who      graphiti.Who // of the turn; zero where nothing was planned
	project  project
	relax    *dialect.Relax // what is asked of the provider, because a block was lost; nil: nothing
	pending  *pendingTurn   // that the request goes on with, where it does not say so itself
	promises promises       // to be kept when the upstream has accepted the request
}

// ofTheSearch are the reasons that tell what a search came to.
var ofTheSearch = []inject.Reason{inject.ReasonNone, inject.ReasonNothing, inject.ReasonWeak, inject.ReasonVisible, inject.ReasonRoutine}

// plan finds out what is allowed, and plans it.
func (s *decider) plan(ctx context.Context, r *request, now moment, p *parsed, c *caller, at *placed, f *session) (d planned) {
	d.project = s.workspaceOf(r.memory, p, at, f.first)
	d.who, d.promises = c.Who, c.promises
	d.who.Session, d.who.Workspace, d.who.Directory = f.id, d.project.key, d.project.Directory
	d.plan = r.memory.Planner.Plan(ctx, p.conv, f.chain, d.who, f.first, s.mode(r, now, p, c, at, f, &d.project))
	if o := &d.plan.Outcome; p.subagent && slices.Contains(ofTheSearch, o.Reason) {
		o.Reason = inject.ReasonSubagent // which is why its turns are not kept
	}
	if d.plan.Forgotten && r.memory.DropThinking {
		d.plan.Inserts, d.relax = r.route.dialect.Info().Relax.Among(d.plan.Inserts, p.text)
	}
	if d.plan.Turn != "" && len(d.plan.Write) > 0 && f.kind == dialect.KindTurn && p.conv.Sure(p.conv.Last) {
		o := &d.plan.Outcome
		d.promises.stated, o.Refused, o.Unscoped = r.memory.Owned.Stated(d.who, d.plan.Generation, string(p.conv.Text(p.conv.Last)))
	}
	return d
}

// mode is what configuration, person, place and client allow. Of the reasons why
// nothing new is decided, though what was decided is repeated, the first counts.
func (s *decider) mode(r *request, now moment, p *parsed, c *caller, at *placed, f *session, w *project) inject.Mode {
	m := inject.Mode{Generation: now.generation, Beside: f.kind}
	if c.Off || w.Repo.Ignore || r.memory.Rules.skipsModel(p.conv.Model) {
		m.Reason = inject.ReasonOptOut
		return m
	}
	if m.Reason = r.memory.Rules.refuses(w); m.Reason != inject.ReasonNone {
		return m
	}
	recall, ingest := r.wants()
	if !recall {
		m.Reason = inject.ReasonOptOut
	}
	if !recall && !ingest {
		return m
	}
	m.Recall, m.Nobody, m.Replay = recall && r.memory.Recall, c.promises.stranger, r.route.replays()
	m.Ingest = ingest && r.memory.Ingest && !c.Temporary && !p.subagent && (f.kind != dialect.KindTurn || !s.isTemplate(at.person, f.id, p.conv))
	return m
}

// wants is what the client says about memory.
func (r *request) wants() (recall, ingest bool) {
	recall, ingest = true, true
	for _, v := range r.head.PeekAll(memoryHeader) {
		for word := range bytes.SplitSeq(v, []byte{','}) {
			switch strings.ToLower(string(bytes.TrimSpace(word))) {
			case "", "on":
			case "recall":
				ingest = false
			case "ingest":
				recall = false
			default: // off, and what may be meant so
				return false, false
			}
		}
	}
	return recall, ingest
}
