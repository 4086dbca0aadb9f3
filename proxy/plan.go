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
	d.who.Session, d.who.Workspace = f.id, d.project.key
	mode := inject.Mode{Generation: now.generation, Beside: f.kind}
	if mode.Reason = r.optedOut(p, c, &d.project); mode.Reason == inject.ReasonNone {
		mode.Recall, mode.Ingest, mode.Reason = r.wants()
		mode.Ingest = mode.Ingest && !c.Temporary && !p.subagent && (f.kind != dialect.KindTurn || !s.begun.isTemplate(at.person, f.id, p.conv))
		mode.Nobody, mode.Replay = c.promises.stranger, r.route.replays()
	}
	d.plan = r.memory.Planner.Plan(ctx, p.conv, f.chain, d.who, f.first, mode)
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

// optedOut is why nothing new is decided for a request, though what was decided is
// repeated; the first reason counts.
func (r *request) optedOut(p *parsed, c *caller, w *project) inject.Reason {
	if c.Off || w.Repo.Ignore || r.memory.Rules.skips(r.head.RequestURI(), p.conv.Model) {
		return inject.ReasonOptOut
	}
	if reason := r.memory.Rules.refuses(w); reason != inject.ReasonNone {
		return reason
	}
	for word := range r.memoryWords() {
		switch word {
		case "", "on", "recall", "ingest":
		default: // off, and what may be meant so
			return inject.ReasonOptOut
		}
	}
	return inject.ReasonNone
}

// wants is what configuration and client allow, and why not, where the client
// wants less.
func (r *request) wants() (recall, ingest bool, why inject.Reason) {
	recall, ingest = r.memory.Recall, r.memory.Ingest
	for word := range r.memoryWords() {
		switch word {
		case "recall":
			ingest = false
		case "ingest":
			recall, why = false, inject.ReasonOptOut
		}
	}
	return recall, ingest, why
}

// memoryWords are what the client says about memory.
func (r *request) memoryWords() func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range r.head.PeekAll(memoryHeader) {
			for word := range bytes.SplitSeq(v, []byte{','}) {
				if !yield(strings.ToLower(string(bytes.TrimSpace(word)))) {
					return
				}
			}
		}
	}
}
