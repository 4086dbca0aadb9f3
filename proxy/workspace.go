package proxy

import (
	"bytes"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// Rules say where there is no memory. In a pattern * stands for any text.
type Rules struct {
	Trusted, Ignored      []string // of workspaces, by key or directory; no trusted ones: all are
	SkipPaths, SkipModels []string // of requests
}

// refuses says why a workspace has no memory; empty when it has. A rule counts
// for the directory that the client names, for what that is without symbolic
// links, and for the repository that it belongs to.
func (r *Rules) refuses(w *project) inject.Reason {
	names := []string{w.key, w.Directory, w.Repo.Dir, w.Repo.Root}
	switch {
	case workspace.MatchAny(r.Ignored, names...), workspace.MatchAny(r.Ignored, w.others...):
		return inject.ReasonOptOut
	case w.unknown:
		return inject.ReasonPlace
	case len(r.Trusted) > 0 && w.key+w.Directory != "" && !workspace.MatchAny(r.Trusted, names...):
		return inject.ReasonUntrusted
	}
	return inject.ReasonNone
}

// Remembers reports whether there is memory in a repository of this machine,
// whatever else a request may say of itself; key is the repository's.
func (r *Rules) Remembers(repo workspace.Repo, key string) bool {
	w := project{Place: identity.Place{Directory: repo.Dir, Repo: repo}, key: key, others: []string{graphiti.PathPrefix + repo.Root, workspace.Key(repo.Claimed)}}
	return !repo.Ignore && r.refuses(&w) == inject.ReasonNone
}

// skipsModel reports whether a request is left alone by its model.
func (r *Rules) skipsModel(model []byte) bool {
	return len(r.SkipModels) > 0 && workspace.Match(r.SkipModels, string(model))
}

// skipsPath reports whether a request is left alone by its path.
func (r *Rules) skipsPath(uri []byte) bool {
	if len(r.SkipPaths) == 0 {
		return false
	}
	path, _, _ := bytes.Cut(uri, []byte{'?'})
	return workspace.Match(r.SkipPaths, string(path)) || workspace.Match(r.SkipPaths, string(wire.PlainPath(uri)))
}

// project is the workspace of one request.
type project struct {
	identity.Place
	key     string   // canonical; empty: none is known
	why     string   // which source says so
	others  []string // what else it could be called; only what is ignored asks
	unknown bool     // it was not found out which one it is, or whether memory is wanted there
}

// workspaceOf finds the project of a request.
func (s *decider) workspaceOf(m *Memory, p *parsed, at *placed, first bool) (w project) {
	defer func() {
		if bug := recover(); bug != nil {
			wire.LogPanic(s.log, "finding the workspace", bug)
			w = project{unknown: true}
		}
	}()
	w.Directory, w.Named = at.place.Directory, at.place.Repo
	w.unknown = unplaced(m, p, at, first || at.names.byID)
	if m.Identity.Places != nil && w.Directory != "" {
		var ok bool
		w.Repo, ok = m.Identity.Places.Find(w.Directory)
		w.unknown = w.unknown || !ok
	}
	w.key, w.why = p.claims.Workspace(w.Place)
	if len(m.Rules.Ignored) > 0 {
		w.others = p.claims.Workspaces(w.Place)
	}
	return w
}

// unplaced reports whether it is not known where a request takes place, and must
// be: it may be a project without memory, or another than what is found is of. A
// client that works in a directory states that in each conversation; what it does
// not state, or states twice, is a form that no rule knows, or was forged.
//
// A summary is of a whole conversation, and some clients ask for it with another
// prompt, which does not say where that was. looked says that its session was
// looked for.
func unplaced(m *Memory, p *parsed, at *placed, looked bool) bool {
	id, rules := &m.Identity, &m.Rules
	works := p.claims.Program().Places
	switch {
	case at.place.Unclear: // the rules may be about one of the places
		return works || id.Places != nil || len(rules.Ignored)+len(rules.Trusted) > 0
	case at.place != (dialect.Place{}) || p.claims.NamedWorkspace() != "":
		return false
	case at.names.kind == dialect.KindTurn:
		return works
	case at.names.kind == dialect.KindSummary && looked:
		return works || id.Places != nil && !at.seen
	}
	return false
}
