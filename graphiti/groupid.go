package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Raw group ids longer than maxRaw are cut, and end with rawHash hex digits of
// the hash of the whole.
const (
	maxRaw  = 120
	rawHash = 16

	rawTenant = 24 // hex digits of a tenant
)

// Group returns the id of the group that holds a caller's memory of a scope. ok is
// false if the caller has none. Graphiti accepts letters, digits, "-" and "_" only,
// and its worker dies of anything else: Group returns no other character, whatever
// the input.
func (n Namer) Group(s Scope, w Who) (id string, ok bool) {
	key, name := "", ""
	switch s {
	case ScopeSession:
		key, name = w.Session, strings.TrimPrefix(w.Session, "session:")
	case ScopeWorkspace:
		key, name = w.Workspace, w.Workspace
	case ScopeUser:
		key, name = w.User, bareUser(w.User)
	case ScopeAgent:
		if w.Agent != "" && w.User != "" {
			key = "agent:" + w.Agent + "|" + w.User
			name = w.Agent + "__user_" + bareUser(w.User)
		}
	case ScopeSystem:
		if w.SystemActor != "" {
			key, name = "system:"+w.SystemActor, w.SystemActor
		}
	}
	if key == "" {
		return "", false
	}
	tenant := w.Tenant
	if w.Proven && (s == ScopeUser || s == ScopeAgent) {
		tenant = ""
	}
	if s == ScopeWorkspace && n.Named && tenant == "" && free(name) {
		return name, true
	}
	if n.Raw {
		raw := string(s) + "_" + name
		if tenant != "" {
			raw = "t" + tenant[:min(rawTenant, len(tenant))] + "_" + raw
		}
		return rawID(raw), true
	}
	if tenant != "" {
		key = "tenant:" + tenant + "|" + key
	}
	sum := sha256.Sum256([]byte(key))
	return "graphiti_" + string(s) + "_" + hex.EncodeToString(sum[:16]), true
}

// free reports whether a name can be a group's and is in no form that Group gives to
// another one, such as a person's.
func free(name string) bool {
	_, ours := ScopeOf(name)
	return !ours && !strings.HasPrefix(name, "graphiti_") && CheckGroup(name) == nil
}

func bareUser(key string) string { return strings.TrimPrefix(key, "user:") }

// inID reports whether Graphiti accepts a character in an id.
func inID(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}

// asID replaces what Graphiti does not accept.
func asID(s string) string {
	return strings.Map(func(r rune) rune {
		if inID(r) {
			return r
		}
		return '_'
	}, s)
}

// rawID does so in an id of any length.
func rawID(s string) string {
	clean := asID(s)
	if len(clean) <= maxRaw {
		return clean
	}
	sum := sha256.Sum256([]byte(s))
	return clean[:maxRaw-1-rawHash] + "-" + hex.EncodeToString(sum[:rawHash/2])
}

// maxGroup bounds an id that is not made by Group.
const maxGroup = 256

// CheckGroup returns an error for an id that Graphiti does not take. Graphiti would
// accept a message for such a group, and its worker would die of it.
func CheckGroup(id string) error {
	if id == "" || len(id) > maxGroup || strings.ContainsFunc(id, func(r rune) bool { return !inID(r) }) {
		return fmt.Errorf("group: %.60q is not the id of a group; ids are of letters, digits, - and _, at most %d", id, maxGroup)
	}
	return nil
}

// ScopeOf returns the scope in the id of a group: every id that Group returns has
// one, but for a project's that is called only by its name (Namer.Named).
func ScopeOf(id string) (Scope, bool) {
	id = strings.TrimPrefix(id, "graphiti_")
	if t, rest, ok := strings.Cut(id, "_"); ok && len(t) == 1+rawTenant && t[0] == 't' {
		id = rest
	}
	for _, s := range []Scope{ScopeSession, ScopeWorkspace, ScopeUser, ScopeAgent, ScopeSystem} {
		if strings.HasPrefix(id, string(s)+"_") {
			return s, true
		}
	}
	return "", false
}
