package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// meant is who a selector means; nobody named is the owner, where there is one.
func (m *remembered) meant(s admin.Selector) (graphiti.Who, error) {
	who, err := m.who(s)
	if err == nil && who.User == "" && m.app.cfg.Identity.Mode != "multi" {
		who.User = m.app.owner
	}
	return who, err
}

// targets are the groups that a recall for the selector would search.
func (m *remembered) targets(s admin.Selector) ([]graphiti.Target, error) {
	if s.Group != "" {
		return []graphiti.Target{{Group: s.Group}}, nil
	}
	who, err := m.meant(s)
	if err != nil {
		return nil, err
	}
	reads := m.namer().Reads(who, true)
	if len(reads) == 0 {
		return nil, errors.New("say whose memory is meant: user, agent, workspace, session, group or credential")
	}
	return reads, nil
}

// Show implements admin.Curated.
func (m *remembered) Show(ctx context.Context, s admin.Selector, n int) (list []admin.Record, groups []string, err error) {
	targets, err := m.targets(s)
	if err != nil {
		return nil, groups, err
	}
	for _, t := range targets {
		// A part that was named is meant alone.
		if s.Group == "" && t.Scope != narrowest(s) {
			continue
		}
		groups = append(groups, t.Group)
		episodes, err := m.app.memory.Episodes(ctx, t.Group, n)
		if err != nil {
			return nil, groups, err
		}
		for _, e := range episodes {
			role, text := spoken(e.Content)
			list = append(list, admin.Record{Group: t.Group, Name: e.Name, Where: "memory", Role: role, Text: text, Time: e.ValidAt.UTC().Format(time.RFC3339), Source: e.SourceDescription})
		}
		err = m.app.pipeline.Waiting(ctx, ledger.Part{Group: t.Group}, func(g graphiti.Message) error {
			list = append(list, admin.Record{Group: t.Group, Name: g.Name, Where: "queue", Role: string(g.RoleType), Text: g.Content, Time: g.Timestamp.UTC().Format(time.RFC3339), Source: g.SourceDescription})
			return nil
		})
		if err != nil {
			return nil, groups, err
		}
	}
	slices.SortStableFunc(list, func(a, b admin.Record) int { return cmp.Compare(a.Time, b.Time) })
	return list[max(0, len(list)-n):], groups, nil
}

// narrowest is the scope that a selector names.
func narrowest(s admin.Selector) graphiti.Scope {
	switch {
	case s.Session != "":
		return graphiti.ScopeSession
	case s.Workspace != "":
		return graphiti.ScopeWorkspace
	case s.Agent != "":
		return graphiti.ScopeAgent
	}
	return graphiti.ScopeUser
}

// Search implements admin.Curated.
func (m *remembered) Search(ctx context.Context, s admin.Selector, query string, all bool) (list []admin.Found, groups []string, err error) {
	targets, err := m.targets(s)
	if err != nil {
		return nil, groups, err
	}
	query = m.app.pipeline.Redacted(query)
	var found []inject.Scoped
	for _, t := range m.recallable(targets) {
		groups = append(groups, t.Group)
		facts, err := m.app.memory.Search(ctx, []string{t.Group}, query, 2*m.app.live.Load().Recall.MaxFacts)
		if err != nil {
			return nil, groups, err
		}
		for i := range facts {
			facts[i].Group = t.Group
		}
		found = append(found, inject.Scoped{Scope: t.Scope, Facts: facts})
	}
	for _, c := range m.app.planner.Choose(found) {
		if c.Verdict != inject.Shown && !all {
			continue
		}
		f := admin.Found{Group: c.Fact.Group, Scope: string(c.Scope), Text: c.Line, Verdict: string(c.Verdict)}
		if !c.Fact.ValidAt.IsZero() {
			f.Since = c.Fact.ValidAt.UTC().Format(time.RFC3339)
		}
		list = append(list, f)
	}
	return list, groups, nil
}

// Others implements admin.Curated.
func (m *remembered) Others(ctx context.Context, s admin.Selector, groups []string) []ledger.Owned {
	if s != (admin.Selector{User: s.User}) {
		return nil
	}
	who, err := m.meant(s)
	owner := proxy.OwnerOf(who)
	if err != nil || owner == "" {
		return nil
	}
	known, err := m.app.pipeline.Groups(ctx, owner)
	if err != nil {
		return nil // it is a hint
	}
	return slices.DeleteFunc(known, func(o ledger.Owned) bool { return slices.Contains(groups, o.Group) })
}

// scopes are those that a text can be put into by hand.
var scopes = []graphiti.Scope{graphiti.ScopeUser, graphiti.ScopeWorkspace, graphiti.ScopeSession, graphiti.ScopeAgent}

// target is the group of a scope for a selector.
func (m *remembered) target(s admin.Selector, scope string) (graphiti.Target, graphiti.Who, error) {
	who, err := m.meant(s)
	if err != nil {
		return graphiti.Target{}, who, err
	}
	sc := graphiti.Scope(cmp.Or(scope, string(graphiti.ScopeUser)))
	if !slices.Contains(scopes, sc) {
		return graphiti.Target{}, who, fmt.Errorf("scope: %q is not known; write user, workspace, session or agent", scope)
	}
	if s.Group != "" {
		if err := graphiti.CheckGroup(s.Group); err != nil {
			return graphiti.Target{}, who, err
		}
		if scope == "" {
			var ok bool
			if sc, ok = graphiti.ScopeOf(s.Group); !ok {
				return graphiti.Target{}, who, errors.New("scope: the group's id does not tell it; write user, workspace, session or agent beside the group")
			}
		}
		return graphiti.Target{Scope: sc, Group: s.Group}, who, nil
	}
	g, ok := m.namer().Group(sc, who)
	if !ok {
		return graphiti.Target{}, who, fmt.Errorf("scope: there is no %s here; name it", sc)
	}
	return graphiti.Target{Scope: sc, Group: g}, who, nil
}

// Promote implements admin.Curated.
func (m *remembered) Promote(ctx context.Context, s admin.Selector, p admin.Promotion) ([]string, error) {
	if !slices.Contains(graphiti.Kinds, p.Kind) {
		return nil, fmt.Errorf("kind: %q is not known; write one of %s", p.Kind, strings.Join(graphiti.Kinds, ", "))
	}
	if n, most := utf8.RuneCountInString(strings.TrimSpace(p.Text)), m.app.live.Load().Ingest.MaxMessageChars; n > most {
		return nil, fmt.Errorf("text: it has %d characters, and %d are kept; shorten it, or raise ingest.max_message_chars", n, most)
	}
	scope := p.Scope
	if scope == "" { // the most durable one that was named
		switch {
		case s.Workspace != "":
			scope = "workspace"
		case s.Session != "":
			scope = "session"
		}
	}
	target, who, err := m.target(s, scope)
	if err != nil {
		return nil, err
	}
	if m.app.pipeline.HoldsSecret(p.Text) {
		return nil, errors.New("the text looks like it holds a credential; it was not kept")
	}
	return []string{target.Group}, m.app.pipeline.Add(ctx, promoted(who, target, p.Kind, p.Text))
}

// promoted is a text as it is kept: the same one once in a group.
func promoted(who graphiti.Who, target graphiti.Target, kind, text string) ledger.Turn {
	now := time.Now()
	return ledger.Turn{
		ID: digest("promote", kind, target.Group, strings.Join(strings.Fields(text), " ")), Kind: kind, Session: who.Session,
		Owner: proxy.OwnerOf(who), Workspace: who.Workspace, User: text, Said: now, Answered: now, Client: "graphiti-proxy",
		Targets: []graphiti.Target{target}, Again: true,
	}
}

// directives are those in a message. Where no scope is written it is the
// project's, which is less than everywhere, and where there is none the
// person's. Those that look like they hold a credential, or are too long, are
// refused; those for a scope that there is not here are unscoped.
func (m *remembered) directives(who graphiti.Who, text string) (list []ledger.Turn, refused, unscoped int) {
	found, refused := capture.Directives(text)
	for _, d := range found {
		scope := graphiti.Scope(d.Scope)
		if scope == "" {
			if scope = graphiti.ScopeUser; who.Workspace != "" {
				scope = graphiti.ScopeWorkspace
			}
		}
		group, ok := m.namer().Group(scope, who)
		switch {
		case !ok:
			unscoped++
			continue
		case m.app.pipeline.HoldsSecret(d.Text):
			refused++
			continue
		}
		list = append(list, promoted(who, graphiti.Target{Scope: scope, Group: group}, d.Kind, d.Text))
	}
	return list, refused, unscoped
}

// maxPending is how many turns may wait for the memory while lines are
// imported.
const maxPending = 2000

// Import implements admin.Curated.
func (m *remembered) Import(ctx context.Context, s admin.Selector, lines []admin.Line) (done admin.Imported, err error) {
	turns := make([]ledger.Turn, 0, len(lines))
	for i := range lines {
		t, err := m.turnOf(s, &lines[i])
		if err != nil {
			return done, fmt.Errorf("line %d: %w", cmp.Or(lines[i].Number, i+1), err)
		}
		turns = append(turns, t)
		if g := t.Targets[0].Group; !slices.Contains(done.Groups, g) {
			done.Groups = append(done.Groups, g)
		}
	}
	for m.app.pipeline.Status().Pending > maxPending {
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	kept, err := m.app.pipeline.AddAll(ctx, turns)
	done.Kept, done.Known = kept, len(turns)-kept
	return done, err
}

// turnOf is a line as it is kept: one side of a turn.
func (m *remembered) turnOf(s admin.Selector, l *admin.Line) (ledger.Turn, error) {
	var t ledger.Turn
	s.User, s.Workspace, s.Group = cmp.Or(l.User, s.User), cmp.Or(l.Workspace, s.Workspace), cmp.Or(l.Group, s.Group)
	if l.Session != "" {
		s.Session = l.Session
	}
	target, who, err := m.target(s, l.Scope)
	if err != nil {
		return t, err
	}
	at := time.Now()
	if l.Timestamp != "" {
		if at, err = time.Parse(time.RFC3339, l.Timestamp); err != nil {
			return t, fmt.Errorf("timestamp: %q cannot be read; write it as 2026-11-21T09:00:00Z", l.Timestamp)
		}
	}
	t = ledger.Turn{
		ID:      digest("import", target.Group, s.Session, l.Timestamp, l.Role, l.Name, l.Content, l.ID),
		Session: who.Session, Owner: proxy.OwnerOf(who), Workspace: who.Workspace, Speaker: l.Name, Said: at, Answered: at,
		Client: "import", Targets: []graphiti.Target{target}, Since: time.Now(), Again: true,
	}
	switch l.Role {
	case "user", "human":
		t.User = l.Content
	case "assistant", "ai", "model":
		t.Assistant = l.Content
	default:
		return t, fmt.Errorf("role: %q is not known; write user or assistant", l.Role)
	}
	if strings.TrimSpace(l.Content) == "" {
		return t, errors.New("content: it is empty")
	}
	return t, nil
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
