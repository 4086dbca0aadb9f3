package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
)

// SessionHash returns a short hash of a session's id. It tells conversations
// apart and does not reveal the id. An empty id gives an empty hash.
func SessionHash(session string) string { return shortHash("talk", session) }

// SessionScope returns the forget scope of a session. With an owner it covers
// that owner's turns only, because others may use the same id; without one it
// covers everybody's. It is never equal to a group id.
func SessionScope(session, owner string) string {
	return SessionScopeOf(SessionHash(session), owner)
}

// SessionScopeOf is SessionScope of the session with that hash.
func SessionScopeOf(hash, owner string) string {
	return "talk:" + hash + ":" + shortHash("owner", owner)
}

// shortHash returns a short, domain-separated hash, or nothing for an empty key.
func shortHash(what, key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("graphiti-proxy." + what + "\x00" + key))
	return hex.EncodeToString(sum[:6])
}

// Owner returns whose turns a caller's are: the person, and where nobody has
// verified that person, the credential together with the claimed name.
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
