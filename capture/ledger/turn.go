package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Turn is a person's message with its answer, or one side of them.
type Turn struct {
	ID        string // stable across retries, restarts and replicas
	Kind      string `json:",omitempty"` // kind of a curated text in User, or "" for a turn
	Session   string // session:<id>
	Owner     string // person's key, below the credential's fingerprint unless a gateway vouches for the person
	Workspace string `json:",omitempty"` // project's key, or ""
	Place     string `json:",omitempty"` // hash of the application outside projects, or ""
	Speaker   string `json:",omitempty"` // speaker's name
	User      string
	Assistant string
	Said      time.Time // arrival of the request
	Answered  time.Time // end of the answer

	Client   string            // client family, such as "openai-js", or ""
	Work     []string          `json:",omitempty"` // lines about the agent's tool calls
	Model    string            `json:",omitempty"` // the model's name, or "" if unknown
	Git      Git               `json:",omitzero"`
	Provider string            `json:",omitempty"` // id of the model's provider, or "" if no facts are distilled there
	Trace    string            `json:",omitempty"` // W3C traceparent, or "" without tracing
	Targets  []graphiti.Target // destination groups

	// Asked reports whether the previous answer may contain a question: then a mere "yes"
	// is a statement.
	Asked bool `json:",omitempty"`

	// Known reports whether the turn adds no fact: the person states nothing, or only asked, and the
	// answer repeats the block shown with the question.
	Known bool `json:",omitempty"`

	// Open reports whether the turn's end is missing because its tool loop was abandoned.
	// If the loop continues after all, the rest becomes a turn of its own.
	Open bool `json:",omitempty"`

	// Backfill reports whether the turn comes from a client's history. It is delivered
	// after all other turns of its group, and dropped if the group has a turn with the same
	// texts: clients shorten histories and repeat examples, so the conversation does not
	// identify a turn.
	Backfill bool `json:",omitempty"`

	// WholeDigest is the digest of the whole turn if the texts are incomplete: they were
	// truncated, or this is the rest of a turn.
	WholeDigest string `json:",omitempty"`

	// Generation is the number of forgets at the arrival of the turn's first request. A
	// scope with a newer generation rejects the turn.
	Generation int64 `json:",omitempty"`

	// Keys are the provider's ids of the answer and its tool calls. A backfill is dropped if
	// the group has one of them.
	Keys []string `json:",omitempty"`

	// Import is the session hash of the import that brought the turn, or "". Forgetting that
	// session forgets the import. Two imported backfills may have the same texts.
	Import string `json:",omitempty"`

	// Standalone marks a single text with an ID derived from it. It is stored once, and
	// again if it is repeated after a forget.
	Standalone bool `json:",omitempty"`

	// Foreign reports whether another installation may have written the text: it does not apply
	// until the person confirms it.
	Foreign bool `json:",omitempty"`

	// Restored describes how the sides of an exported turn were stored.
	Restored []Restored `json:",omitempty"`

	// SessionHash is the hash of the session. It is set on exported turns, which do not
	// name their session, and on turns stored in the ledger.
	SessionHash string `json:",omitempty"`
}

// Restored describes the stored form of one side of a turn, without its text.
type Restored struct {
	Name    string // episode name
	Speaker string `json:",omitempty"`
	Role    graphiti.RoleType
	Source  string `json:",omitempty"` // source description, verbatim
}

// OfSession returns the hash of the turn's session, or "" without a session.
func (t *Turn) OfSession() string {
	if t.SessionHash != "" {
		return t.SessionHash
	}
	return graphiti.SessionHash(t.Session)
}

// Git is the state of the repository during a turn. Unknown fields are empty.
type Git struct {
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
	Dirty  bool   `json:"dirty,omitempty"`
}

// Valid returns g without a malformed commit or branch.
func (g Git) Valid() Git {
	if len(g.Commit) != 40 && len(g.Commit) != 64 || strings.Trim(strings.ToLower(g.Commit), "0123456789abcdef") != "" {
		g.Commit, g.Dirty = "", false
	}
	if len(g.Branch) > 256 || strings.ContainsFunc(g.Branch, func(r rune) bool { return r < ' ' }) {
		g.Branch = ""
	}
	return g
}

// Digest returns the digest of the texts of the whole turn.
func (t *Turn) Digest() string {
	if t.WholeDigest != "" {
		return t.WholeDigest
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(t.User) + "\x00" + strings.TrimSpace(t.Assistant)))
	return hex.EncodeToString(sum[:12])
}

// KeyOf returns the key of the session, project or owner that the turn's group of that
// scope belongs to.
func (t *Turn) KeyOf(scope graphiti.Scope) string {
	switch scope {
	case graphiti.ScopeSession:
		return t.Session
	case graphiti.ScopeWorkspace:
		return t.Workspace
	}
	return t.Owner
}

// maxWork is the most lines of a turn's work.
const maxWork = 12

// AddWork adds lines about tool calls. The newest line about a command or a file counts.
func (t *Turn) AddWork(lines []string) {
	about := func(line string) string {
		head, _, _ := strings.Cut(line, `": `)
		return head
	}
	for _, l := range lines {
		t.Work = append(slices.DeleteFunc(slices.Clone(t.Work), func(o string) bool { return about(o) == about(l) }), l)
	}
	t.Work = t.Work[max(0, len(t.Work)-maxWork):]
}

// Rest returns the remainder of a turn stored without its end. A rest can have a rest
// itself.
func (t *Turn) Rest() *Turn {
	r := *t
	r.WholeDigest = t.Digest()
	sum := sha256.Sum256([]byte(t.ID + ".rest"))
	r.ID, r.User = hex.EncodeToString(sum[:16]), ""
	return &r
}

// Promoted returns the turn of a text that is stored verbatim. Its ID is the same for equal texts of a
// group.
func Promoted(who graphiti.Who, target graphiti.Target, generation int64, kind, text string) Turn {
	now := time.Now()
	return Turn{
		ID: DerivedID("promote", kind, target.Group, strings.Join(strings.Fields(text), " ")), Kind: kind, Session: who.Session,
		Owner: who.Owner(), Workspace: who.Workspace, User: text, Said: now, Answered: now, Client: "graphiti-proxy",
		Targets: []graphiti.Target{target}, Generation: generation, Standalone: true,
	}
}

// DerivedID returns the ID of a turn that no request made. Equal parts have the same ID.
func DerivedID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
