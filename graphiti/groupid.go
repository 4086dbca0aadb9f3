package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// A raw group id that does not say all of its key, or is longer than maxRaw, ends with
// rawHash hex digits of the hash.
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
		if strings.HasPrefix(w.Session, hashed) {
			return "", false
		}
		key, name = w.Session, strings.TrimPrefix(w.Session, "session:")
	case ScopeWorkspace:
		key, name = w.Workspace, w.Workspace
	case ScopeUser:
		key, name = w.User, userName(w.User)
	case ScopeAgent:
		if w.Agent != "" && w.User != "" {
			key = agentKey(w.Agent, w.User)
			name = w.Agent + agentJoint + userName(w.User)
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
	whole := keyNamed(s, name) == key
	raw := string(s) + "_" + name
	if tenant != "" {
		raw = "t" + tenant[:min(rawTenant, len(tenant))] + "_" + raw
		key = "tenant:" + tenant + "|" + key
	}
	sum := sha256.Sum256([]byte(key))
	if n.Raw {
		return rawID(raw, whole, hex.EncodeToString(sum[:rawHash/2])), true
	}
	return "graphiti_" + string(s) + "_" + hex.EncodeToString(sum[:16]), true
}

// agentJoint stands between an agent and its person in a raw id.
const agentJoint = "__user_"

func agentKey(agent, user string) string { return "agent:" + agent + "|" + user }

// userName returns a person's key as raw ids have it.
func userName(key string) string {
	name := strings.TrimPrefix(key, "user:")
	if platform, id, ok := strings.Cut(name, ":"); ok && numbered(platform, id) {
		return platform + "_" + id
	}
	return name
}

// numbered reports whether an id on a platform stands in a raw id without a hash, as in
// user_discord_123.
func numbered(platform, id string) bool {
	return platform != "" && strings.Trim(platform, "abcdefghijklmnopqrstuvwxyz") == "" && id != "" && strings.Trim(id, "0123456789") == ""
}

// keyNamed returns the only key that has a name in raw ids without a hash. Group compares
// it with the key that it made the name of: a name that could be of two keys, such as
// discord_123, is of one of them.
func keyNamed(s Scope, name string) string {
	switch s {
	case ScopeSession:
		return "session:" + name
	case ScopeSystem:
		return "system:" + name
	case ScopeUser:
		if platform, id, ok := strings.Cut(name, "_"); ok && numbered(platform, id) {
			name = platform + ":" + id
		}
		return "user:" + name
	case ScopeAgent:
		agent, user, _ := strings.Cut(name, agentJoint)
		return agentKey(agent, keyNamed(ScopeUser, user))
	case ScopeWorkspace:
	}
	return name
}

// free reports whether a name can be a group's and is in no form that Group gives to
// another one, such as a person's.
func free(name string) bool {
	_, ours := ScopeOf(name)
	return !ours && !strings.HasPrefix(name, "graphiti_") && CheckGroup(name) == nil
}

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

// rawID makes an id of a text. whole reports whether the text is of one key only. If it is
// not, or an id has to differ from it, or ends as one with a hash does, the id ends with
// the hash of the key, so that no two keys share an id.
func rawID(s string, whole bool, hash string) string {
	clean := asID(s)
	if whole && clean == s && len(s) <= maxRaw && !endsWithHash(s) {
		return s
	}
	return clean[:min(len(clean), maxRaw-1-rawHash)] + "-" + hash
}

func endsWithHash(id string) bool {
	at := len(id) - 1 - rawHash
	return at >= 0 && id[at] == '-' && strings.Trim(id[at+1:], "0123456789abcdef") == ""
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
