package proxy

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
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
func (s *decider) place(ctx context.Context, r *request, p *parsed, c *caller) (at placed) {
	at.place, at.says = p.states, p.states != (dialect.Place{})
	at.person = rootOf(&c.Who)
	at.base = at.person.In(p.claims.NamedWorkspace(), dialect.Place{})
	at.here = at.base.In("", at.place)
	at.names = s.named(ctx, r, p, &at.where, c.Who.Session)

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
