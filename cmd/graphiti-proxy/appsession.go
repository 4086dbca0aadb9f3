package main

import (
	"context"
	"errors"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// Parts implements admin.Remembered. Which groups a session left something in
// lately is known; where it is not, the person's are looked through.
func (m *remembered) Parts(ctx context.Context, s admin.Selector) (list []ledger.Owned, err error) {
	if s.Session == "" {
		return nil, nil
	}
	who, owner, err := m.asked(s)
	if err != nil {
		return nil, err
	}
	if s.Group != "" {
		return []ledger.Owned{{Group: s.Group, Owner: owner, Session: who.Session}}, nil
	}
	known, err := m.app.pipeline.Talks(ctx, who.Session)
	if err != nil {
		return nil, err
	}
	search := len(known) == 0
	if search {
		if known, err = m.app.pipeline.Groups(ctx, ""); err != nil {
			return nil, err
		}
	}
	agents := m.namer().Groups(graphiti.ScopeAgent, who)
	for _, o := range known {
		o.Session, o.Shared = who.Session, false
		before := slices.IndexFunc(list, func(l ledger.Owned) bool { return l.Group == o.Group })
		switch {
		case s.Workspace != "" && (o.Scope != string(graphiti.ScopeWorkspace) || o.Key != who.Workspace),
			s.Agent != "" && !slices.Contains(agents, o.Group),
			o.Scope == string(graphiti.ScopeSession): // that is all of a group
		case before >= 0: // two people's sessions of one name cannot be told apart there
			list[before].Shared = list[before].Shared || !search
		case owner != "" && !owns(who, o.Owner):
			if !search && slices.ContainsFunc(known, func(k ledger.Owned) bool { return k.Group == o.Group && owns(who, k.Owner) }) {
				o.Owner, o.Shared = owner, true
				list = append(list, o)
			}
		default:
			if search {
				if there, err := m.holds(ctx, ledger.Part{Group: o.Group, Session: who.Session, Owner: ownerIn(known, o.Group, who, owner)}); err != nil || !there {
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

// holds reports whether anything of a part is kept.
func (m *remembered) holds(ctx context.Context, part ledger.Part) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, m.app.live.Load().Memory.Timeout)
	defer cancel()
	err := m.export(ctx, part, func(admin.Record) error { return errFound })
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// ForgetSession implements admin.Remembered. A group of the session's own is
// emptied as a whole.
func (m *remembered) ForgetSession(ctx context.Context, s admin.Selector) (blocks int, err error) {
	part, own, err := m.partOf(ctx, s)
	if err != nil {
		return 0, err
	}
	if own {
		if blocks, err = m.Forget(ctx, s.Group); err != nil {
			return blocks, err
		}
	}
	more, err := m.forget(ctx, part)
	return blocks + more, err
}

// ExportSession implements admin.Remembered.
func (m *remembered) ExportSession(ctx context.Context, s admin.Selector, f func(admin.Record) error) error {
	part, own, err := m.partOf(ctx, s)
	if err != nil {
		return err
	}
	if own {
		return m.Export(ctx, s.Group, f)
	}
	return m.export(ctx, part, f)
}

// partOf is what a selector with a group and a session means, and whether the
// group is the session's own.
func (m *remembered) partOf(ctx context.Context, s admin.Selector) (part ledger.Part, own bool, err error) {
	who, owner, err := m.asked(s)
	if err != nil {
		return part, false, err
	}
	known, err := m.app.pipeline.Groups(ctx, "")
	own = slices.Contains(m.namer().Groups(graphiti.ScopeSession, who), s.Group) || slices.ContainsFunc(known, func(o ledger.Owned) bool {
		return o.Group == s.Group && o.Scope == string(graphiti.ScopeSession) && o.Key == who.Session
	})
	return ledger.Part{Group: s.Group, Session: who.Session, Owner: ownerIn(known, s.Group, who, owner)}, own, err
}

// ownerIn is whose the caller's turns are in a group: the owner, or who that was
// below the old tenant, where the group is from then.
func ownerIn(known []ledger.Owned, group string, who graphiti.Who, owner string) string {
	former, old := who.Former()
	if owner != "" && old && slices.ContainsFunc(known, func(k ledger.Owned) bool { return k.Group == group && k.Owner == former.Owner() }) {
		return former.Owner()
	}
	return owner
}
