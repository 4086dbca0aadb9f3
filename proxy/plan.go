package proxy

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// planned is the plan for a request.
type planned struct {
	plan     inject.Plan
	fate     graphiti.Fate  // of the newest message; of the open turn's message in a tool round
	who      graphiti.Who   // of the turn; zero without a plan
	child    bool           // the notes of the parent's session get a subagent's work
	relax    *dialect.Relax // the option for the provider after a forgotten block; nil if none
	promises promises       // actions that wait until the upstream accepts the request
}

// searchReasons are the reasons that result from a search.
var searchReasons = []inject.Reason{inject.ReasonNone, inject.ReasonNothing, inject.ReasonWeak, inject.ReasonOutdated, inject.ReasonVisible, inject.ReasonTold, inject.ReasonRoutine}

// plan plans the memory of a request, within the mode that is allowed.
func (s *decider) plan(ctx context.Context, r *request, now moment, p *parsed, c *caller, at *placed) (d planned) {
	f, w := &at.session, &at.project
	d.who, d.promises = c.Who, c.promises
	d.who.Program, d.who.Session, d.who.Workspace, d.who.Directory, d.who.Alone = p.claims.Client(), f.id, w.key, w.Directory, w.alone
	if w.key == "" { // the place of standing texts
		d.who.Application = p.claims.Application()
	}
	mode := s.mode(r, p, c, at)
	d.fate = s.fate(r, p, c, at)
	mode.Ingest, mode.Generation = mayWrite(d.fate), now.generation
	if at.pending != nil && !mode.Ingest {
		at.pending = nil
	}
	if at.pending != nil && f.summary {
		mode.Ingest = false // the message before which the plan puts its block is no person's
	}
	d.plan = r.memory.Planner.Plan(ctx, p.conv, f.chain, d.who, f.first && p.conv.Opens(), mode)
	if open := at.pending; open != nil {
		d.plan.Turn, d.plan.Write, d.plan.Unseen = open.turn.ID, open.turn.Targets, nil
	}
	d.plan.Outcome.Held, d.plan.Outcome.Lost = r.memory.Doubts.Holds(d.who.Session), len(slices.DeleteFunc(slices.Clone(s.lostIn(at.base, d.who.Session)), func(turn string) bool { return turn == d.plan.Turn }))
	d.child = f.agent && f.kind == dialect.KindTurn && mode.Recall && p.ingest && r.memory.Ingest && !c.Temporary
	if d.fate.Reason == graphiti.OffQuota {
		d.plan.Outcome.Quota = r.memory.Turns.Full(d.who.Owner())
	}
	if w.late {
		d.plan.Write, d.plan.Unseen = nil, nil
	}
	d.fate = d.fateAfter(r.memory, f.kind == dialect.KindTurn && at.pending == nil)
	if o := &d.plan.Outcome; (f.agent || w.alone && f.kind == dialect.KindTurn) && slices.Contains(searchReasons, o.Reason) {
		if o.Reason = inject.ReasonPlace; f.agent {
			o.Reason = inject.ReasonSubagent // subagents' turns are not stored
		}
	}
	if d.plan.Forgotten && r.memory.DropThinking {
		d.plan.Inserts, d.relax = p.dialect.Info().Relax.Among(d.plan.Inserts, p.text)
	}
	if d.plan.Turn != "" && p.conv.Last >= 0 && len(d.plan.Write) > 0 && f.kind == dialect.KindTurn && !f.summary && !p.conv.Answered() {
		_, repeats := p.conv.Repeats(p.conv.Last)
		isFirst := s.awaitAccepted(&d, f.chain[p.conv.Last])
		if text := string(p.conv.Text(p.conv.Last)); isFirst != nil && !repeats && len(text) <= standing.MaxMessage {
			project, inChat := *w, !f.atOnce && p.conv.InChat(p.claims.InChat()) && !s.byModel(p.conv.Text(p.conv.Last), &at.where)
			template := inChat && p.claims.IsLibrary() && s.countFirst(p.conv, f) > 1
			d.promises.left, d.promises.isFirst = time.Until(now.until), func() bool {
				return isFirst() && s.commands.Words(&project.Repo, text, commandWait) == ""
			}
			d.promises.said = standing.Message{
				Who: d.who, Generation: d.plan.Generation, Turn: d.plan.Turn, Text: text, Typed: inChat && !template && p.conv.Typed(p.conv.Last), Amid: inChat && p.conv.IsAmid(p.conv.Last), Template: template,
				Earlier:  r.memory.Responses.Earlier(at.person, orderOf(d.who.Session)),
				FromFile: func() bool { return s.commands.Hold(&project.Repo, text, commandWait) },
			}
		}
	}
	return d
}

// awaitAccepted notes that a turn's message waits for an accepted request. isFirst must be called
// for an accepted one, and is true for the first of them: after an error, that is a retry. It is
// nil if there was an accepted one.
func (s *decider) awaitAccepted(d *planned, said dialect.Fingerprint) (isFirst func() bool) {
	type waits bool
	key, decided := keyOf(said, s.memo.Name(d.plan.Turn)), d.plan.Decided
	if decided {
		s.memo.Update(key, func(any) (any, int) { return waits(true), 0 })
	} else if s.memo.Get(key) != any(waits(true)) {
		return nil
	}
	return func() (first bool) {
		s.memo.Update(key, func(was any) (any, int) {
			first = was == any(waits(true)) || was == nil && decided // nil: the note was evicted
			return waits(false), 0
		})
		return first
	}
}

// commandWait is the longest time that a request waits for a project's command files;
// commandRead, that its turn does.
const (
	commandWait = 20 * time.Millisecond
	commandRead = time.Second
)

// mode returns the mode that configuration, person, place and client allow. If there are
// several reasons against a new block, the first one counts. Earlier blocks are repeated
// even then.
func (s *decider) mode(r *request, p *parsed, c *caller, at *placed) (mode inject.Mode) {
	m, f, w := r.memory, &at.session, &at.project
	mode.Beside, mode.Unseen, mode.Cut = f.kind, f.unseen, f.sequel != nil
	if c.Off || m.Rules.skipsModel(p.conv.Model) {
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
	mode.Recall, mode.Asked, mode.Nobody, mode.Replay = p.recall && m.Recall, p.asked, c.promises.stranger, r.route.replays()
	if p.conv.Last >= 0 && f.kind == dialect.KindTurn {
		mode.Silent = standing.Forgets(p.conv.Text(p.conv.Last))
	}
	return mode
}

// Rules exclude workspaces and requests from memory. In a pattern, * matches any text.
type Rules struct {
	Trusted, Ignored      []string // workspaces, by key or directory; if Trusted is empty, all are trusted
	SkipPaths, SkipModels []string // requests

	RemotePaths bool // the path of a directory that is not on this machine names a project
	Optional    bool // a client with unknown tools that names no directory has the person's memory
}

// refuses returns the reason for a workspace without memory; empty if it has memory. The
// rules apply to the directory that the client names, to its path without symbolic links,
// and to its repository.
func (r *Rules) refuses(w *project) inject.Reason {
	names := []string{w.key, w.Directory, w.Repo.Dir, w.Repo.Root, w.Repo.Main}
	switch {
	case w.Repo.Ignore, workspace.MatchAny(r.Ignored, names...), workspace.MatchAny(r.Ignored, w.others...),
		len(r.Ignored) > 0 && workspace.MatchAny(r.Ignored, w.Repo.Keys()...):
		return inject.ReasonOptOut
	case w.unknown, w.late:
		return inject.ReasonPlace
	case len(r.Trusted) > 0 && !workspace.MatchAny(r.Trusted, names...):
		return inject.ReasonUntrusted
	}
	return inject.ReasonNone
}

// Remembers reports whether the rules allow memory in a repository of this machine; key
// is the repository's.
func (r *Rules) Remembers(repo workspace.Repo, key string) bool {
	w := project{Place: identity.Place{Directory: repo.Dir, Repo: repo}, key: key}
	return r.refuses(&w) == inject.ReasonNone
}

// skipsModel reports whether a request with this model has no memory.
func (r *Rules) skipsModel(model []byte) bool {
	return len(r.SkipModels) > 0 && workspace.Match(r.SkipModels, string(model))
}

// skipsPath reports whether a request with this path has no memory.
func (r *Rules) skipsPath(uri []byte) bool {
	if len(r.SkipPaths) == 0 {
		return false
	}
	path, _, _ := bytes.Cut(uri, []byte{'?'})
	return workspace.Match(r.SkipPaths, string(path)) || workspace.Match(r.SkipPaths, string(wire.PlainPath(uri)))
}
