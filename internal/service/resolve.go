package service

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Meant is the groups of a selector. Groups are whole groups; Parts are a session's part of
// groups.
type Meant struct {
	Groups []ledger.Owned `json:"groups"`
	Parts  []ledger.Owned `json:"parts,omitempty"`
}

// All returns the IDs of all groups.
func (m Meant) All() (ids []string) {
	for _, o := range slices.Concat(m.Groups, m.Parts) {
		ids = append(ids, o.Group)
	}
	return ids
}

// Find returns the groups of a selector.
func (sv *Service) Find(ctx context.Context, s Selector) (m Meant, err error) {
	m.Groups = []ledger.Owned{}
	if s.Own && s.User == "" && !sv.o.Multi {
		s.User = sv.o.Owner
	}
	if s.Own && s.User+s.Credential == "" {
		return m, InvalidError{errNobody}
	}
	r, err := sv.resolve(ctx, s)
	if err != nil {
		return m, err
	}
	m.Groups = append(m.Groups, r.groups...)
	m.Parts, err = r.parts(ctx)
	if err == nil {
		r.markEmpty(ctx, m.Groups)
	}
	return m, err
}

// resolution is the meaning of a selector, from one listing of all groups.
type resolution struct {
	sv *Service
	Selector
	who    graphiti.Who
	owner  string         // owner of the selected turns, or "" for any owner
	known  []ledger.Owned // all groups, once for each owner
	groups []ledger.Owned // whole groups of the selector
}

// resolve returns the meaning of a selector. The default is the owner of single mode.
func (sv *Service) resolve(ctx context.Context, s Selector) (r *resolution, err error) {
	if s == (Selector{}) && !sv.o.Multi {
		s.User = sv.o.Owner
	}
	if s == (Selector{}) {
		return nil, InvalidError{errNobody}
	}
	r = &resolution{sv: sv, Selector: s}
	if err := s.check(); err != nil {
		return nil, err
	}
	if r.who, r.owner, err = sv.asked(s); err != nil {
		return nil, err
	}
	if r.known, err = sv.o.Pipeline.Owned(ctx, ""); err != nil {
		return nil, err
	}
	switch {
	case s.Group == "":
		r.resolveGroups()
	case s.Session == "": // else only a part of it
		r.groups = []ledger.Owned{{Group: s.Group}}
	}
	return r, nil
}

// resolveGroups adds the groups that the caller's keys derive, and the stored groups of the
// owner.
func (r *resolution) resolveGroups() {
	listed := make(map[string]bool)
	add := func(o ledger.Owned) {
		if listed[o.Group] {
			return
		}
		listed[o.Group] = true
		// The stored turns determine a group's owner, not its name.
		for _, k := range r.known {
			if k.Group == o.Group {
				o.Scope, o.Key, o.Shared = k.Scope, k.Key, k.Shared || r.owner != "" && k.Owner != r.owner
			}
		}
		r.groups = append(r.groups, o)
	}
	// Other clients may have written to groups that the proxy would write to now.
	for _, in := range []struct {
		scope graphiti.Scope
		asked bool
	}{
		{graphiti.ScopeUser, (r.Workspace+r.Session+r.Agent == "" || r.Own) && r.owner != ""},
		{graphiti.ScopeAgent, r.Agent != "" && r.Session == ""},
		{graphiti.ScopeWorkspace, r.Workspace != "" && r.Session == ""},
		{graphiti.ScopeSession, r.Session != "" && r.Workspace+r.Agent == ""},
	} {
		if !in.asked || in.scope != graphiti.ScopeUser && r.owner == "" && r.who.Tenant != "" {
			continue
		}
		if g, ok := r.sv.namer().Group(in.scope, r.who); ok {
			add(ledger.Owned{Group: g, Owner: r.owner, Scope: string(in.scope)})
		}
	}
	for _, o := range r.known {
		switch {
		case r.Agent != "", r.owner != "" && o.Owner != r.owner:
		case r.Own && o.Scope == string(graphiti.ScopeUser):
			add(o)
		case r.Workspace != "" && (o.Scope != string(graphiti.ScopeWorkspace) || o.Key != r.who.Workspace):
		case r.Session != "" && (!isOwn(&o, r.who.Session)):
		default:
			add(o)
		}
	}
}

// isOwn reports whether a group is the session's own.
func isOwn(o *ledger.Owned, session string) bool {
	return o.Scope == string(graphiti.ScopeSession) && graphiti.SessionHash(o.Key) == graphiti.SessionHash(session)
}

// owned returns the groups of a selector with their stored owner and scope, and the owner of the
// selected turns, or "" for any owner.
func (sv *Service) owned(ctx context.Context, s Selector) (groups []ledger.Owned, owner string, err error) {
	r, err := sv.resolve(ctx, s)
	if err != nil {
		return nil, "", err
	}
	r.groups = slices.DeleteFunc(r.groups, func(o ledger.Owned) bool { return s.unshared && o.Shared })
	for i := range r.groups {
		o := &r.groups[i]
		if at := slices.IndexFunc(r.known, func(k ledger.Owned) bool { return k.Group == o.Group }); at >= 0 && o.Owner == "" {
			*o = r.known[at]
		}
		o.Owner = cmp.Or(o.Owner, r.owner)
		if o.Scope == "" {
			scope, _ := graphiti.ScopeOf(o.Group)
			o.Scope = string(scope)
		}
	}
	return r.groups, r.owner, nil
}

// parts returns the groups with a part of the selector's session, except for the session's own
// group. The ledger lists the groups with recent turns of a session. If it lists none, parts
// searches all groups of the person.
func (r *resolution) parts(ctx context.Context) (list []ledger.Owned, err error) {
	if r.Session == "" {
		return nil, nil
	}
	if r.Group != "" {
		return []ledger.Owned{{Group: r.Group, Owner: r.owner, Session: r.who.Session}}, nil
	}
	known, err := r.sv.o.Pipeline.SessionGroups(ctx, r.who.Session)
	if err != nil {
		return nil, err
	}
	search := len(known) == 0
	if search {
		known = r.known
	}
	agent, _ := r.sv.namer().Group(graphiti.ScopeAgent, r.who)
	for _, o := range known {
		o.Session, o.Shared = r.who.Session, false
		before := slices.IndexFunc(list, func(l ledger.Owned) bool { return l.Group == o.Group })
		switch {
		case r.Workspace != "" && (o.Scope != string(graphiti.ScopeWorkspace) || o.Key != r.who.Workspace),
			r.Agent != "" && o.Group != agent,
			o.Scope == string(graphiti.ScopeSession): // the whole group belongs to sessions
		case before >= 0: // sessions of two people with the same name are one here
			list[before].Shared = list[before].Shared || !search
		case r.owner != "" && o.Owner != r.owner:
			if !search && slices.ContainsFunc(known, func(k ledger.Owned) bool { return k.Group == o.Group && k.Owner == r.owner }) {
				o.Owner, o.Shared = r.owner, true
				list = append(list, o)
			}
		default:
			if search {
				there, err := r.sv.holds(ctx, ledger.Part{Group: o.Group, Session: r.who.Session, Owner: r.owner})
				if err != nil {
					return nil, err
				}
				if !there {
					continue
				}
			}
			list = append(list, o)
		}
	}
	return list, nil
}

var errFound = errors.New("found")

// holds reports whether a part has records, here or in Graphiti, from which they may not be deleted yet.
func (sv *Service) holds(ctx context.Context, part ledger.Part) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, sv.settings().Timeout)
	defer cancel()
	err := sv.export(ctx, part, func(Record) error { return errFound })
	if err == nil && part.Session == "" { // a copy for an undo can be deleted, too
		err = sv.o.State.Snapshots.Each(ctx, func(string, []byte) error { return errFound }, copyScope+part.Group)
	}
	if errors.Is(err, errFound) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	return sv.o.Pipeline.Withdraws(ctx, part)
}

// partOf returns the part for a selector of a group, or of a session in it. own reports whether
// the group is the session's own.
func (sv *Service) partOf(ctx context.Context, s Selector) (part ledger.Part, own bool, err error) {
	if s.Session == "" {
		return ledger.Part{Group: s.Group}, false, nil
	}
	r, err := sv.resolve(ctx, s)
	if err != nil {
		return part, false, err
	}
	theirs, _ := sv.namer().Group(graphiti.ScopeSession, r.who)
	own = s.Group == theirs || slices.ContainsFunc(r.known, func(o ledger.Owned) bool { return o.Group == s.Group && isOwn(&o, r.who.Session) })
	return ledger.Part{Group: s.Group, Session: r.who.Session, Owner: r.owner}, own, nil
}
