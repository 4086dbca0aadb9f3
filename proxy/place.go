package proxy

import (
	"bytes"
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// where is the place of a request, and what the fingerprints of its
// conversation begin with: a session belongs to a person and a workspace.
type where struct {
	place dialect.Place
	says  bool // the request itself says so
	seen  bool // it does not, and another one of the session did, or could

	person dialect.Fingerprint // the caller, wherever they are
	base   dialect.Fingerprint // and in the workspace that a header names
	here   dialect.Fingerprint // and in this place
	root   dialect.Fingerprint // the conversation before the request's first message
}

// placed is where a request takes place, and the session that it names.
type placed struct {
	where
	names named
}

// place finds out where a request takes place. A request that states no place takes
// that of the session that it names, or of the conversation that its connection
// holds. A directory that a request states is never replaced by another.
func (s *decider) place(ctx context.Context, known Sessions, end *heldEnd, p *parsed, who *graphiti.Who) (at placed) {
	at.place, at.says = p.states, p.states != (dialect.Place{})
	at.person = rootOf(who)
	at.base = at.person.In(p.claims.NamedWorkspace(), dialect.Place{})
	at.here = at.base.In("", at.place)
	at.names = s.named(ctx, known, end, p, &at.where, who.Session)

	held, from := at.names.held, p.conv.Began()
	if !at.says {
		if held != nil {
			at.place, at.seen = held.at.place, true
		} else if at.names.session != "" {
			seen := s.sessionNote(sessionOf{at.base, at.names.session})
			at.place, at.seen = seen.place, seen.placed
		}
		if path := p.claims.CodexRepo(at.place.Directory).Path; path != "" && !workspace.Within(path, at.place.Directory) {
			at.place, at.says = dialect.Place{Directory: path}, true
		}
		at.here = at.base.In("", at.place)
		from = at.place
	}
	previous := p.conv.Field(dialect.FieldPreviousResponseID)
	switch {
	case held != nil && from == held.at.place:
		at.root = held.end
	case held != nil:
		at.root = held.end.In("", from)
	case len(previous) > 0:
		at.root = at.here.Link(dialect.RoleOther, previous)
	case from == at.place:
		at.root = at.here
	default:
		at.root = at.base.In("", from)
	}
	return at
}

// of is the conversation itself, where a request in this place can belong to it.
func (h *heldEnd) of(at *where, moves bool) *heldEnd {
	if h == nil || !h.goesOn(at, moves) {
		return nil
	}
	return h
}

// goesOn reports whether a request with this place can belong to a conversation
// that the connection holds: it is of the same person, and in the same place,
// unless its client changes its directory.
func (h *heldEnd) goesOn(at *where, moves bool) bool {
	if h.at.base != at.base {
		return false
	}
	return moves || !at.says || h.at.place == (dialect.Place{}) || h.at.place == at.place
}

// rootOf is the fingerprint of a conversation of a caller before anything was
// said. A bot shares no conversation with the person whose credential it has.
func rootOf(w *graphiti.Who) dialect.Fingerprint {
	speaker := w.User
	if w.SystemActor != "" {
		speaker = "system:" + w.SystemActor
	}
	return dialect.Root(w.Tenant, speaker)
}

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
