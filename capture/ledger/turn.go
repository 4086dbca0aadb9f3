package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Turn is one finished exchange: what a person said and what was answered.
type Turn struct {
	ID        string // stable over retries, restarts and replicas
	Kind      string `json:",omitempty"` // of a curated text, which is then in User; empty: a turn
	Session   string // session:<id>
	Owner     string // a person's key, below a credential's fingerprint where nobody vouches for it
	Workspace string `json:",omitempty"` // its key; may be empty
	Speaker   string `json:",omitempty"` // the name of who speaks, in a turn of one side
	User      string
	Assistant string
	Partial   bool      // the answer was cut at the token limit
	Said      time.Time // when the request came in
	Answered  time.Time // when the answer ended

	Client  string            // the client's family, such as "openai-js"; may be empty
	Tools   string            `json:",omitempty"` // one line about the tools that were called; may be empty
	Git     Git               `json:",omitzero"`
	Trace   string            `json:",omitempty"` // W3C's traceparent, where somebody looks
	Targets []graphiti.Target // where it is to be kept

	// Asked says that the answer before it may have asked something: "yes" states what
	// was asked.
	Asked bool `json:",omitempty"`

	// Known says that the person only asked, and that the answer says no more than the
	// block that was shown with the question.
	Known bool `json:",omitempty"`

	// Open says that the turn's end was not seen: its tool loop was abandoned.
	// Should it go on after all, what comes is kept as a turn of its own.
	Open bool `json:",omitempty"`

	// Backfill says that a client's history brought the turn. It is delivered
	// after all others of its group, and not where the group has a turn in which
	// the same was said: clients shorten histories and repeat examples, and then
	// it is not the conversation that tells turns apart.
	Backfill bool `json:",omitempty"`

	// WholeDigest is the digest of the whole turn where the texts are a part of
	// it: they were cut, or this is the rest of a turn.
	WholeDigest string `json:",omitempty"`

	// Generation is the number of forgets when the turn's first request arrived. A scope
	// with a newer generation does not keep the turn.
	Generation int64 `json:",omitempty"`

	// Standalone says that the turn is one text whose ID is made of the text. It is kept
	// once, and again if it is said again after it was forgotten.
	Standalone bool `json:",omitempty"`

	// Restored says how the sides of a turn from an export were kept before.
	Restored []Restored `json:",omitempty"`

	// SessionHash is the hash of the session. Of a turn from an export nothing else is
	// known, because an export does not name the session; of another one it is written
	// with the turn.
	SessionHash string `json:",omitempty"`
}

// Restored is how one side of a turn was kept. Its text is the turn's.
type Restored struct {
	Name    string // of the episode
	Speaker string `json:",omitempty"`
	Role    graphiti.RoleType
	Source  string `json:",omitempty"` // its description, as it was
}

// OfSession returns the hash of the turn's session; empty when it has none.
func (t *Turn) OfSession() string {
	if t.SessionHash != "" {
		return t.SessionHash
	}
	return graphiti.SessionHash(t.Session)
}

// Git is the state of the repository in which a turn happened. Its fields are
// empty where they are not known.
type Git struct {
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
	Dirty  bool   `json:"dirty,omitempty"`
}

// Valid returns g without a commit that cannot be one, and without a branch that cannot
// be one.
func (g Git) Valid() Git {
	if len(g.Commit) != 40 && len(g.Commit) != 64 || strings.Trim(strings.ToLower(g.Commit), "0123456789abcdef") != "" {
		g.Commit, g.Dirty = "", false
	}
	if len(g.Branch) > 256 || strings.ContainsFunc(g.Branch, func(r rune) bool { return r < ' ' }) {
		g.Branch = ""
	}
	return g
}

// Digest returns the digest of what was said in the whole turn.
func (t *Turn) Digest() string {
	if t.WholeDigest != "" {
		return t.WholeDigest
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(t.User) + "\x00" + strings.TrimSpace(t.Assistant)))
	return hex.EncodeToString(sum[:12])
}

// KeyOf returns the key of the one, or the place, that a group of that scope belongs to.
func (t *Turn) KeyOf(scope graphiti.Scope) string {
	switch scope {
	case graphiti.ScopeSession:
		return t.Session
	case graphiti.ScopeWorkspace:
		return t.Workspace
	}
	return t.Owner
}

// Rest returns what is left of a turn whose beginning was kept without its end. If the
// turn goes on once more, the rest has a rest.
func (t *Turn) Rest() *Turn {
	r := *t
	r.WholeDigest = t.Digest()
	sum := sha256.Sum256([]byte(t.ID + ".rest"))
	r.ID, r.User = hex.EncodeToString(sum[:16]), ""
	return &r
}
