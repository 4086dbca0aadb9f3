package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
)

// Talk stands for a session: it tells conversations apart, and not which they
// are.
func Talk(session string) string { return stands("talk", session) }

// TalkMark names what was said in a session by one owner, or by whoever, where
// there is none: others may use the same id. No group has such a name.
func TalkMark(session, owner string) string {
	return "talk:" + Talk(session) + ":" + stands("owner", owner)
}

// stands is a short hash; of nothing it is nothing.
func stands(what, key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("graphiti-proxy." + what + "\x00" + key))
	return hex.EncodeToString(sum[:6])
}

// Owner names whose turns a caller's are: a person, and where nobody vouches for
// them the credential that they came with.
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
