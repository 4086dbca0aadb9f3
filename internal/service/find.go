package service

import (
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
func (m Meant) All() []string {
	ids := make([]string, 0, len(m.Groups)+len(m.Parts))
	for _, o := range m.Groups {
		ids = append(ids, o.Group)
	}
	for _, o := range m.Parts {
		ids = append(ids, o.Group)
	}
	return ids
}

// Find returns the groups of a selector.
func (sv *Service) Find(ctx context.Context, s Selector) (m Meant, err error) {
	m.Groups = []ledger.Owned{}
	if (s == (Selector{}) || s.Own && s.User == "") && !sv.o.Multi {
		s.User = sv.o.Owner
	}
	if s == (Selector{}) || s.Own && s.User+s.Credential == "" {
		return m, InvalidError{errNobody}
	}
	if err := s.check(); err != nil {
		return m, err
	}
	list, err := sv.groups(ctx, s)
	if err != nil {
		return m, err
	}
	m.Groups = append(m.Groups, list...)
	m.Parts, err = sv.parts(ctx, s)
	if err == nil {
		sv.markEmpty(ctx, m.Groups)
	}
	return m, err
}

// groups returns the whole groups of a selector.
func (sv *Service) groups(ctx context.Context, s Selector) ([]ledger.Owned, error) {
	if s.Group != "" && s.Session != "" {
		return nil, nil // only a part of it
	}
	if s.Group != "" {
		return []ledger.Owned{{Group: s.Group}}, nil
	}
	who, owner, err := sv.asked(s)
	if err != nil {
		return nil, err
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	if err != nil {
		return nil, err
	}
	var list []ledger.Owned
	listed := make(map[string]bool)
	add := func(o ledger.Owned) {
		if listed[o.Group] {
			return
		}
		listed[o.Group] = true
		// The stored turns determine a group's owner, not its name.
		for _, k := range known {
			if k.Group == o.Group {
				o.Scope, o.Key, o.Shared = k.Scope, k.Key, k.Shared || owner != "" && k.Owner != owner
			}
		}
		list = append(list, o)
	}
	// Other clients may have written to groups that the proxy would write to now.
	for _, in := range []struct {
		scope graphiti.Scope
		asked bool
	}{
		{graphiti.ScopeUser, (s.Workspace+s.Session+s.Agent == "" || s.Own) && owner != ""},
		{graphiti.ScopeAgent, s.Agent != "" && s.Session == ""},
		{graphiti.ScopeWorkspace, s.Workspace != "" && s.Session == ""},
		{graphiti.ScopeSession, s.Session != "" && s.Workspace+s.Agent == ""},
	} {
		if !in.asked || in.scope != graphiti.ScopeUser && owner == "" && who.Tenant != "" {
			continue
		}
		if g, ok := sv.namer().Group(in.scope, who); ok {
			add(ledger.Owned{Group: g, Owner: owner, Scope: string(in.scope)})
		}
	}
	for _, o := range known {
		switch {
		case s.Agent != "", owner != "" && o.Owner != owner:
		case s.Own && o.Scope == string(graphiti.ScopeUser):
			add(o)
		case s.Workspace != "" && (o.Scope != string(graphiti.ScopeWorkspace) || o.Key != who.Workspace):
		case s.Session != "" && (!isOwn(&o, who.Session)):
		default:
			add(o)
		}
	}
	return list, nil
}

// isOwn reports whether a group is the session's own.
func isOwn(o *ledger.Owned, session string) bool {
	return o.Scope == string(graphiti.ScopeSession) && graphiti.SessionHash(o.Key) == graphiti.SessionHash(session)
}

// others returns the owner's other groups if the selector names only the person, or the person
// besides a project.
func (sv *Service) others(ctx context.Context, s Selector, groups []string) []ledger.Owned {
	if s != (Selector{User: s.User}) && !s.Own {
		return nil
	}
	who, err := sv.meant(s)
	owner := who.Owner()
	if err != nil || owner == "" {
		return nil
	}
	known, err := sv.o.Pipeline.Owned(ctx, owner)
	if err != nil {
		return nil // the groups are only a hint
	}
	return slices.DeleteFunc(known, func(o ledger.Owned) bool { return slices.Contains(groups, o.Group) })
}

// parts returns the groups with a part of the selector's session, except for the session's own
// group. The ledger lists the groups with recent turns of a session. If it lists none, parts
// searches all groups of the person.
func (sv *Service) parts(ctx context.Context, s Selector) (list []ledger.Owned, err error) {
	if s.Session == "" {
		return nil, nil
	}
	who, owner, err := sv.asked(s)
	if err != nil {
		return nil, err
	}
	if s.Group != "" {
		return []ledger.Owned{{Group: s.Group, Owner: owner, Session: who.Session}}, nil
	}
	known, err := sv.o.Pipeline.SessionGroups(ctx, who.Session)
	if err != nil {
		return nil, err
	}
	search := len(known) == 0
	if search {
		if known, err = sv.o.Pipeline.Owned(ctx, ""); err != nil {
			return nil, err
		}
	}
	agent, _ := sv.namer().Group(graphiti.ScopeAgent, who)
	for _, o := range known {
		o.Session, o.Shared = who.Session, false
		before := slices.IndexFunc(list, func(l ledger.Owned) bool { return l.Group == o.Group })
		switch {
		case s.Workspace != "" && (o.Scope != string(graphiti.ScopeWorkspace) || o.Key != who.Workspace),
			s.Agent != "" && o.Group != agent,
			o.Scope == string(graphiti.ScopeSession): // the whole group belongs to sessions
		case before >= 0: // sessions of two people with the same name are one here
			list[before].Shared = list[before].Shared || !search
		case owner != "" && o.Owner != owner:
			if !search && slices.ContainsFunc(known, func(k ledger.Owned) bool { return k.Group == o.Group && k.Owner == owner }) {
				o.Owner, o.Shared = owner, true
				list = append(list, o)
			}
		default:
			if search {
				if there, err := sv.holds(ctx, ledger.Part{Group: o.Group, Session: who.Session, Owner: owner}); err != nil || !there {
					if err != nil {
						return nil, err
					}
					continue
				}
			}
			list = append(list, o)
		}
	}
	return list, nil
}

var errFound = errors.New("found")

// holds reports whether a part has records. An unlisted group counts only as a whole.
func (sv *Service) holds(ctx context.Context, part ledger.Part) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, sv.settings().Timeout)
	defer cancel()
	err := sv.export(ctx, part, func(Record) error { return errFound })
	var unlisted *graphiti.UnlistedError
	if errors.Is(err, errFound) || part.Session == "" && errors.As(err, &unlisted) {
		return true, nil
	}
	return false, err
}

// partOf returns the part for a selector of a group, or of a session in it. own reports whether
// the group is the session's own.
func (sv *Service) partOf(ctx context.Context, s Selector) (part ledger.Part, own bool, err error) {
	if s.Session == "" {
		return ledger.Part{Group: s.Group}, false, nil
	}
	who, owner, err := sv.asked(s)
	if err != nil {
		return part, false, err
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	theirs, _ := sv.namer().Group(graphiti.ScopeSession, who)
	own = s.Group == theirs || slices.ContainsFunc(known, func(o ledger.Owned) bool {
		return o.Group == s.Group && isOwn(&o, who.Session)
	})
	return ledger.Part{Group: s.Group, Session: who.Session, Owner: owner}, own, err
}
