package graphiti

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Scope is a kind of memory.
type Scope string

// The scopes.
const (
	ScopeSession   Scope = "session"   // one conversation
	ScopeWorkspace Scope = "workspace" // a repository or project
	ScopeUser      Scope = "user"      // a person
	ScopeAgent     Scope = "agent"     // one agent's view of one person
	ScopeSystem    Scope = "system"    // a bot without a person
)

// Who is the caller of one request. Fields are canonical keys, or "" if unknown.
type Who struct {
	Tenant      string // namespace of the credential in multi mode (tenant.go), otherwise ""
	Proven      bool   // the credential authenticates the person, so their groups have no tenant
	User        string // github_login:<login>, user:<id> or user:<platform>:<id>
	Session     string // session:<id>
	Workspace   string // github_repo:<host>/<org>/<repo> or path:<absolute path>
	Agent       string // the agent's bare name
	SystemActor string // the actor's bare name

	Directory string // the client's working directory; part of no key

	// Application is a hash of the client program and its credential, and Program the
	// program's name. They are part of no key.
	Application, Program string

	// Alone limits the caller to the memory of its session: it may work in any project.
	Alone bool
}

// Place returns a hash of a request's project, or of its application outside projects.
// A person's standing text applies in the place of its message.
func (w Who) Place() string {
	kind, key := "project", w.Workspace
	if key == "" {
		kind, key = "application", w.Application
	}
	sum := Digest("place "+kind, key)
	return hex.EncodeToString(sum[:8])
}

// Target is a scope and the group that holds it.
type Target struct {
	Scope Scope  `json:"scope"`
	Group string `json:"group"`
}

// Scopes is a choice of scopes; the zero value is "auto".
type Scopes struct{ list []Scope }

// ParseScopes reads "auto", or a list of scopes.
func ParseScopes(names []string) (Scopes, error) {
	if len(names) == 0 || len(names) == 1 && names[0] == "auto" {
		return Scopes{}, nil
	}
	var s Scopes
	for _, n := range names {
		switch sc := Scope(n); sc {
		case ScopeSession, ScopeWorkspace, ScopeUser, ScopeAgent:
			s.list = append(s.list, sc)
		default:
			return Scopes{}, fmt.Errorf("%q is not a scope; write auto, or some of session, workspace, user, agent", n)
		}
	}
	return s, nil
}

// Namer finds the groups of a caller. It is a value without state.
type Namer struct {
	Raw    bool   // readable group IDs instead of hashes
	Named  bool   // a project whose name is a valid group ID uses that name
	Recall Scopes // scopes to read
	Ingest Scopes // scopes to write
	Also   Also   // more groups to read
}

// Reads returns the groups that recall searches for a caller, in order of preference. about
// reports whether the question is about the person. A system actor reads only its own group.
func (n Namer) Reads(w Who, about bool) []Target {
	if w.SystemActor != "" {
		return n.targets(w, ScopeSystem)
	}
	switch {
	case w.Alone:
		return n.targets(w, ScopeSession)
	case n.Recall.list != nil:
		return n.targets(w, n.Recall.list...)
	case w.Workspace != "" && about:
		return n.targets(w, ScopeSession, ScopeWorkspace, ScopeUser, ScopeAgent)
	case w.Workspace != "":
		return n.targets(w, ScopeSession, ScopeWorkspace, ScopeAgent)
	}
	return n.targets(w, ScopeSession, ScopeUser, ScopeAgent)
}

// Writes returns the groups that store a caller's turns: by default the workspace's or else
// the person's, and the agent's.
func (n Namer) Writes(w Who) []Target {
	if w.SystemActor != "" {
		return n.targets(w, ScopeSystem)
	}
	switch {
	case w.Alone:
		return n.targets(w, ScopeSession)
	case n.Ingest.list != nil:
		return n.targets(w, n.Ingest.list...)
	case w.Workspace != "":
		return n.targets(w, ScopeWorkspace, ScopeAgent)
	}
	return n.targets(w, ScopeUser, ScopeAgent)
}

// Beside returns the person's own group. In a project, it stores statements about the person and
// answers requests for them. Writes then has only the project's group. ok is false
// without a project or a person, and if ingest.scopes is set.
func (n Namer) Beside(w Who) (t Target, ok bool) {
	if w.SystemActor != "" || w.Workspace == "" || w.User == "" || n.Ingest.list != nil {
		return t, false
	}
	g, ok := n.Group(ScopeUser, w)
	return Target{ScopeUser, g}, ok
}

// targets returns the caller's distinct groups for the scopes.
func (n Namer) targets(w Who, scopes ...Scope) []Target {
	out := make([]Target, 0, len(scopes))
	for _, s := range scopes {
		if g, ok := n.Group(s, w); ok && !slices.ContainsFunc(out, func(t Target) bool { return t.Group == g }) {
			out = append(out, Target{s, g})
		}
	}
	return out
}

// maxKey is the maximum length of a key, in bytes.
const maxKey = 512

// UserKey returns the canonical key of a person: josh becomes user:josh. It lowercases GitHub
// logins. ok is false for invalid names.
func UserKey(name string) (key string, ok bool) {
	switch {
	case !validKey(name):
		return "", false
	case strings.HasPrefix(name, "github_login:"):
		return strings.ToLower(name), len(name) > len("github_login:")
	}
	name = strings.TrimPrefix(name, "user:")
	if platform, login, ok := strings.Cut(name, ":"); ok && strings.EqualFold(platform, "github") {
		name = "github:" + strings.ToLower(login)
	}
	return "user:" + name, name != ""
}

// SessionKey returns the canonical key of a session. ok is false for invalid IDs.
func SessionKey(id string) (key string, ok bool) {
	id = strings.TrimPrefix(id, "session:")
	return "session:" + id, validKey(id)
}

// BareName validates the name of an agent or system actor. It rejects "|", the separator of
// agent and person in keys.
func BareName(name string) (string, bool) {
	return name, validKey(name) && !strings.Contains(name, "|")
}

// validKey rejects names that are empty, longer than maxKey, or contain control characters.
func validKey(s string) bool {
	if s == "" || len(s) > maxKey {
		return false
	}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffd {
			return false
		}
	}
	return true
}
