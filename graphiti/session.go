package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// hashed begins the key of a session of which only the hash is known. No client can
// write such a key: SessionKey puts its own prefix before whatever they name.
const hashed = "talk:"

// SessionHash returns a short hash of a session's key. It tells conversations
// apart and does not reveal the id. An empty key gives an empty hash.
func SessionHash(session string) string {
	if hash, ok := strings.CutPrefix(session, hashed); ok {
		return hash
	}
	return shortHash("talk", session)
}

// NamedSession returns the key of a session that a person names by its id, or by the
// hash that lists show. "session:" before an id says that it is no hash. The key of a
// hash stands for the session wherever its hash is compared, and has no group.
func NamedSession(name string) (key string, ok bool) {
	if len(name) == 2*hashBytes && strings.Trim(name, "0123456789abcdef") == "" {
		return hashed + name, true
	}
	return SessionKey(name)
}

const hashBytes = 6

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
	return hex.EncodeToString(sum[:hashBytes])
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
