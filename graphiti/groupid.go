package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Raw group ids longer than maxRaw are cut, and end with rawHash hex digits of
// the hash of the whole.
const (
	maxRaw  = 120
	rawHash = 16

	rawTenant = 24 // hex digits of a tenant
)

// Group is the id of the group in which a caller's memory of a scope is kept,
// and whether the caller has one. Graphiti accepts letters, digits, "-" and
// "_" only, and its worker dies of anything else: no input yields such an id.
func (n Namer) Group(s Scope, w Who) (id string, ok bool) {
	key, raw := "", ""
	switch s {
	case ScopeSession:
		key = w.Session
		raw = "session_" + strings.TrimPrefix(key, "session:")
	case ScopeWorkspace:
		key = w.Workspace
		raw = "workspace_" + key
	case ScopeUser:
		key = w.User
		raw = rawUser(key)
	case ScopeAgent:
		if w.Agent != "" && w.User != "" {
			key = "agent:" + w.Agent + "|" + w.User
			raw = "agent_" + w.Agent + "__" + rawUser(w.User)
		}
	case ScopeSystem:
		if w.SystemActor != "" {
			key = "system:" + w.SystemActor
			raw = "system_" + w.SystemActor
		}
	}
	if key == "" {
		return "", false
	}
	tenant := w.Tenant
	if w.Proven && (s == ScopeUser || s == ScopeAgent) {
		tenant = ""
	}
	if n.Raw {
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

func rawUser(key string) string { return "user_" + strings.TrimPrefix(key, "user:") }

// rawID replaces what Graphiti does not accept.
func rawID(s string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
	if len(clean) <= maxRaw {
		return clean
	}
	sum := sha256.Sum256([]byte(s))
	return clean[:maxRaw-1-rawHash] + "-" + hex.EncodeToString(sum[:rawHash/2])
}
