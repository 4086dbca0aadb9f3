package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// forgetTimeout is how long one call to forget a group may take: as long as
// Graphiti needs for what it has accepted.
const forgetTimeout = 5 * time.Minute

// earlyTimeout is how long other replicas are waited for before the memory is
// asked to forget. At the end they are waited for again.
const earlyTimeout = 10 * time.Second

// remembered is the memory of the app in all its places.
type remembered struct {
	app   *app
	names atomic.Pointer[graphiti.Namer]
	facts *cache.Recall[[]graphiti.Fact]
	state *cache.State

	withholding sync.Mutex // one after the other, or an older look would count
}

func (m *remembered) namer() graphiti.Namer { return *m.names.Load() }

func (m *remembered) setNamer(n graphiti.Namer) { m.names.Store(&n) }

// Groups implements admin.Remembered.
func (m *remembered) Groups(ctx context.Context, s admin.Selector) ([]ledger.Owned, error) {
	if s.Group != "" && s.Session != "" {
		return nil, nil // a part of it
	}
	if s.Group != "" {
		return []ledger.Owned{{Group: s.Group}}, nil
	}
	who, owner, err := m.asked(s)
	if err != nil {
		return nil, err
	}
	known, err := m.app.pipeline.Groups(ctx, "")
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
		// Whose a group is says what was written to it, and not its name.
		for _, k := range known {
			if k.Group == o.Group {
				o.Scope, o.Key, o.Shared = k.Scope, k.Key, k.Shared || owner != "" && !owns(who, k.Owner)
			}
		}
		list = append(list, o)
	}
	// What would be written for them now, whether or not this proxy did: other
	// clients share these groups.
	for scope, asked := range map[graphiti.Scope]bool{
		graphiti.ScopeUser:      s.Workspace+s.Session+s.Agent == "" && owner != "",
		graphiti.ScopeAgent:     s.Agent != "" && s.Session == "",
		graphiti.ScopeWorkspace: s.Workspace != "" && s.Session == "",
		graphiti.ScopeSession:   s.Session != "" && s.Workspace+s.Agent == "",
	} {
		if !asked || scope != graphiti.ScopeUser && owner == "" && who.Tenant != "" {
			continue
		}
		for _, g := range m.namer().Groups(scope, who) {
			add(ledger.Owned{Group: g, Owner: owner, Scope: string(scope)})
		}
	}
	for _, o := range known {
		switch {
		case s.Agent != "", owner != "" && !owns(who, o.Owner):
		case s.Workspace != "" && (o.Scope != string(graphiti.ScopeWorkspace) || o.Key != who.Workspace):
		case s.Session != "" && (o.Scope != string(graphiti.ScopeSession) || o.Key != who.Session):
		default:
			add(o)
		}
	}
	return list, nil
}

// owns reports whether turns of an owner are the caller's, those included that
// were kept below the caller's old tenant.
func owns(who graphiti.Who, owner string) bool {
	former, old := who.Former()
	return owner == who.Owner() || old && owner == former.Owner()
}

// asked is who a selector means, and whose turns are theirs; empty: whoever's.
func (m *remembered) asked(s admin.Selector) (who graphiti.Who, owner string, err error) {
	who, err = m.who(s)
	if s.User != "" || s.Credential != "" {
		owner = who.Owner()
	}
	if err == nil && s.Session != "" && owner == "" && s.Group == "" && m.app.cfg.Identity.Mode == "multi" {
		err = errors.New("session: others may use the same id; say whose it is with user or credential")
	}
	return who, owner, err
}

// who is the caller that a selector means.
func (m *remembered) who(s admin.Selector) (w graphiti.Who, err error) {
	identity := m.app.cfg.Identity
	multi := identity.Mode == "multi"
	read := func(what, value string, key func(string) (string, bool), to *string) {
		if value == "" {
			return
		}
		k, ok := key(value)
		if !ok {
			err = errors.Join(err, fmt.Errorf("%s: %q cannot be one", what, value))
		}
		*to = k
	}
	read("user", s.User, graphiti.UserKey, &w.User)
	read("agent", s.Agent, graphiti.BareName, &w.Agent)
	read("workspace", s.Workspace, graphiti.WorkspaceKey, &w.Workspace)
	read("session", s.Session, graphiti.SessionKey, &w.Session)
	w.User = m.app.people.Resolve(w.User)
	switch fingerprints, ok := readFingerprints(s.Credential); {
	case s.Credential != "" && (!ok || !multi):
		err = errors.Join(err, errors.New("credential: write sha256: and 64 hex digits, with commas between several that are sent together; credentials are told apart in identity.mode multi only"))
	case s.Credential != "":
		w.SetCredentials(fingerprints...)
		if w.User == "" {
			w.User = "user:credential"
		}
	case multi && w.User != "":
		w.SetPerson()
	case !multi && w.User == "" && w.Agent != "":
		w.User = m.app.owner
	}
	return w, err
}

// readFingerprints reads sha256:<hex>, or several with commas between them.
func readFingerprints(list string) (fingerprints []string, ok bool) {
	for one := range strings.SplitSeq(list, ",") {
		digits, hashed := strings.CutPrefix(strings.TrimSpace(one), "sha256:")
		if _, err := hex.DecodeString(digits); err != nil || !hashed || len(digits) != 64 {
			return nil, false
		}
		fingerprints = append(fingerprints, strings.ToLower(digits))
	}
	return fingerprints, true
}

// Forget implements admin.Remembered. What is on its way when it begins is not
// recalled any more when it ends.
func (m *remembered) Forget(ctx context.Context, group string) (int, error) {
	return m.forget(ctx, ledger.Part{Group: group})
}

// forget forgets a part. From its beginning until it is proven to be gone nothing
// of the group is recalled, over restarts.
func (m *remembered) forget(ctx context.Context, part ledger.Part) (blocks int, err error) {
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	stone := cache.Tombstone{Group: part.Group, Mark: part.Mark()}
	if err := m.state.Tombstones.Set(ctx, stone); err != nil {
		return 0, err
	}
	// Conversations lose their blocks before the memory is asked, which may take
	// minutes or be cut off. What fails here is done again at the end.
	early, stop := context.WithTimeout(ctx, earlyTimeout)
	blocks, _ = m.elsewhere(early, part)
	stop()
	err = m.app.pipeline.Forget(ctx, part, func(ctx context.Context) error {
		more, err := m.elsewhere(ctx, part)
		blocks += more
		return err
	})
	if err == nil {
		err = m.state.Tombstones.Clear(ctx, stone)
	}
	if err != nil {
		err = notForgotten(err)
	}
	return blocks, errors.Join(err, m.withhold(ctx))
}

// notForgotten says what follows from a group that is not proven to be forgotten.
func notForgotten(err error) error {
	to := graphiti.Remedy(err)
	if to != "" {
		to += "; then "
	}
	return fmt.Errorf("not forgotten: %w; until it is, nothing of this group is recalled, and new turns for it wait; to do: %srun it again, which also deletes what was said since", err, to)
}

// withhold keeps turns from the groups that have a tombstone, so that a look
// shows only what was to be forgotten.
func (m *remembered) withhold(ctx context.Context) error {
	m.withholding.Lock()
	defer m.withholding.Unlock()
	groups, err := m.state.Tombstones.Groups(ctx)
	if err != nil {
		return err
	}
	m.app.pipeline.Withhold(groups)
	return nil
}

// recallable leaves the groups of which something may be shown.
func (m *remembered) recallable(reads []graphiti.Target) []graphiti.Target {
	return slices.DeleteFunc(slices.Clone(reads), func(t graphiti.Target) bool { return m.state.Tombstones.Has(t.Group) })
}

// elsewhere empties what is kept outside of the memory itself. When it returns
// no replica shows any of it. Which blocks show what was said in a session is
// not known, so that all of the group's go.
func (m *remembered) elsewhere(ctx context.Context, part ledger.Part) (blocks int, err error) {
	// Searches that began before the group was empty, and what they left; then
	// the blocks that were made of what they found, and those of plans which
	// had that.
	m.app.planner.Forgot()
	m.facts.DropGroup(part.Group)
	// A replica that does not answer keeps nothing from the others.
	failed := errors.Join(m.app.dropUnderWay(part), m.app.tellForgotten(ctx, part))
	blocks, err = m.state.Blocks.Forget(part.Group)
	err = errors.Join(failed, err, m.state.Snapshots.Forget(part.Mark()), m.app.tellForgotten(ctx, part), m.facts.Forget(part.Group))
	m.app.planner.Forgot()
	return blocks, err
}

// Export implements admin.Remembered.
func (m *remembered) Export(ctx context.Context, group string, f func(admin.Record) error) error {
	return m.export(ctx, ledger.Part{Group: group}, f)
}

func (m *remembered) export(ctx context.Context, part ledger.Part, f func(admin.Record) error) error {
	err := m.app.memory.Export(ctx, part.Group, func(e graphiti.Episode) error {
		if !part.Said(&e) {
			return nil
		}
		role, text := spoken(e.Content)
		return f(admin.Record{Group: part.Group, Name: e.Name, Where: "memory", Role: role, Text: text, Time: e.ValidAt.UTC().Format(time.RFC3339Nano), Source: e.SourceDescription})
	})
	if err != nil {
		return err
	}
	err = m.app.pipeline.Waiting(ctx, part, func(g graphiti.Message) error {
		return f(admin.Record{Group: part.Group, Name: g.Name, Where: "queue", Role: string(g.RoleType), Text: g.Content, Time: g.Timestamp.UTC().Format(time.RFC3339Nano), Source: g.SourceDescription})
	})
	if err != nil {
		return err
	}
	return m.state.Snapshots.Each(ctx, func(body []byte) error {
		for _, line := range inject.SnapshotLines(body) {
			if err := f(admin.Record{Group: part.Group, Where: "session", Text: line}); err != nil {
				return err
			}
		}
		return nil
	}, part.Mark(), part.Group)
}

// spoken takes apart what Graphiti makes of a message: role(role_type): text.
func spoken(content string) (role, text string) {
	head, text, ok := strings.Cut(content, "): ")
	_, role, opened := strings.Cut(head, "(")
	if !ok || !opened {
		return "", content
	}
	return role, text
}
