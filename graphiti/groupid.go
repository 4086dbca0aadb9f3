package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// A raw group ID longer than maxRaw, or ambiguous about its key, ends with rawHash hex
// digits of the hash.
const (
	maxRaw  = 120
	rawHash = 16

	rawTenant = 24 // hex digits of a tenant
)

// Group returns the ID of a caller's group for a scope. ok is false if the caller has none.
// Graphiti accepts only letters, digits, "-" and "_", and other characters end its worker,
// so Group returns no other characters.
func (n Namer) Group(s Scope, w Who) (id string, ok bool) {
	key, name := "", ""
	if w.Alone && s != ScopeSession && s != ScopeSystem {
		return "", false
	}
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
	owned := key
	if tenant != "" {
		owned = "tenant:" + tenant + "|" + key
	}
	sum := sha256.Sum256([]byte(owned))
	if !n.Raw {
		var b [64]byte
		id := append(append(append(b[:0], "graphiti_"...), s...), '_')
		return string(hex.AppendEncode(id, sum[:16])), true
	}
	raw := string(s) + "_" + name
	if tenant != "" {
		raw = "t" + tenant[:min(rawTenant, len(tenant))] + "_" + raw
	}
	return rawID(raw, keyNamed(s, name) == key, hex.EncodeToString(sum[:rawHash/2])), true
}

// agentJoint separates an agent and its person in a raw ID.
const agentJoint = "__user_"

func agentKey(agent, user string) string { return "agent:" + agent + "|" + user }

// userName returns the form of a person's key in raw IDs.
func userName(key string) string {
	name := strings.TrimPrefix(key, "user:")
	if platform, id, ok := strings.Cut(name, ":"); ok && numbered(platform, id) {
		return platform + "_" + id
	}
	return name
}

// numbered reports whether a raw ID may contain a platform's ID without a hash, as in
// user_discord_123.
func numbered(platform, id string) bool {
	return platform != "" && strings.Trim(platform, "abcdefghijklmnopqrstuvwxyz") == "" && id != "" && strings.Trim(id, "0123456789") == ""
}

// keyNamed returns the one key whose raw ID needs no hash for a name. Group compares it with
// the actual key, so an ambiguous name, such as discord_123, belongs to one key only.
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

// free reports whether a name is a valid group ID outside the forms that Group reserves, such
// as a person's.
func free(name string) bool {
	_, ours := ScopeOf(name)
	return !ours && !strings.HasPrefix(name, "graphiti_") && CheckGroup(name) == nil
}

// inID reports whether Graphiti accepts a character in an id.
func inID(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}

// asID replaces characters that Graphiti rejects.
func asID(s string) string {
	return strings.Map(func(r rune) rune {
		if inID(r) {
			return r
		}
		return '_'
	}, s)
}

// rawID makes an ID of a text. whole reports whether the text identifies one key. If not, or
// if the text is no valid ID or ends like a hash, the ID ends with the key's hash, so that
// keys never share an ID.
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

// maxGroup is the maximum length of an ID from outside.
const maxGroup = 256

// CheckGroup returns an error for an invalid group ID. Graphiti would accept a message for
// such a group, and its worker would die of it.
func CheckGroup(id string) error {
	if id == "" || len(id) > maxGroup || strings.ContainsFunc(id, func(r rune) bool { return !inID(r) }) {
		return fmt.Errorf("group: %.60q is not the id of a group; ids are of letters, digits, - and _, at most %d", id, maxGroup)
	}
	return nil
}

// ScopeOf returns the scope of a group ID. Every ID from Group has one, except a project's
// plain name (Namer.Named).
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
