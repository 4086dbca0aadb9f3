package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// hashed prefixes session keys made from a hash. Clients cannot forge such a key, because
// SessionKey adds its own prefix to every ID.
const hashed = "talk:"

// SessionHash returns a short hash that identifies a session without revealing its ID. An
// empty key has an empty hash.
func SessionHash(session string) string {
	if hash, ok := strings.CutPrefix(session, hashed); ok {
		return hash
	}
	return shortHash("talk", session)
}

// NamedSession returns the key of a session, given its ID or the hash in listings. The prefix
// "session:" marks an ID. A key made from a hash equals the session wherever hashes are
// compared, and has no group.
func NamedSession(name string) (key string, ok bool) {
	if len(name) == 2*hashBytes && strings.Trim(name, "0123456789abcdef") == "" {
		return hashed + name, true
	}
	return SessionKey(name)
}

const hashBytes = 6

// SessionScope returns the forget scope of a session. With an owner it covers only that
// owner's turns, because session IDs may repeat; without one it covers all owners. It never
// equals a group ID.
func SessionScope(session, owner string) string {
	return SessionScopeOf(SessionHash(session), owner)
}

// SessionScopeOf is SessionScope of the session with that hash.
func SessionScopeOf(hash, owner string) string {
	return "talk:" + hash + ":" + shortHash("owner", owner)
}

// SessionIn returns the hash of the session that a scope names. covers reports whether the scope
// covers an owner's turns. ok is false for other scopes.
func SessionIn(scope string) (hash string, covers func(owner string) bool, ok bool) {
	hash, owner, ok := strings.Cut(strings.TrimPrefix(scope, "talk:"), ":")
	return hash, func(o string) bool { return owner == "" || owner == shortHash("owner", o) }, ok && strings.HasPrefix(scope, "talk:")
}

// shortHash returns a short, domain-separated hash in hex, or "" for an empty key.
func shortHash(what, key string) string {
	if key == "" {
		return ""
	}
	return hex.EncodeToString(shortSum(what, key))
}

func shortSum(what, key string) []byte {
	sum := sha256.Sum256([]byte("graphiti-proxy." + what + "\x00" + key))
	return sum[:hashBytes]
}

// Owner returns the owner of a caller's turns: the proven person, or else the credential with
// the claimed name.
func (w Who) Owner() string {
	person := w.User
	if w.SystemActor != "" {
		person = "system:" + w.SystemActor
	}
	if w.Tenant != "" && !w.Proven {
		return "sha256:" + w.Tenant + "|" + person
	}
	return person
}

// TenantOf returns the credential of an owner's tenant, or else the owner: a proven person.
func TenantOf(owner string) string {
	tenant, _, _ := strings.Cut(owner, "|")
	return tenant
}
