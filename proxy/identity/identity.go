package identity

import (
	"bytes"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// Settings say how callers are told apart.
type Settings struct {
	Multi     bool   // every credential is its own tenant
	Owner     string // the person in single mode, a canonical key
	Trusted   Fingerprints
	BodyUsers bool // a trusted credential's person may be named in the body and the query too
	People    *Registry
	OpenWebUI string            // the secret with which Open WebUI signs who speaks; empty: what it signs is not believed
	Places    *workspace.Places // finds the repositories of this machine; nil: there are none
}

// Caller is who a request is from, and why that is thought.
type Caller struct {
	Who       graphiti.Who
	Known     bool // there is somebody whose memory it could be
	Vouched   bool // the operator has named the credential
	Off       bool // the person wants no memory
	Temporary bool // nothing is to be kept
	Doubted   bool // it is not certain that the person's memory is theirs
	Foreign   bool // a page of the web may have sent it, which is not the person

	// Contradicts says that a header which names somebody or something stands
	// twice, with different values, or was signed by nobody who is believed.
	Contradicts bool

	Why [kinds]string
}

// reasons that are no source of a table.
const (
	whyOwner      = "identity.owner"
	whyCredential = "the credential"
	whyRegistry   = "the credential, which identity.users_file gives to this person"
)

// Identify says who a request is from that claims this. It notes in cl what it finds
// contradictory.
//
// In multi mode whatever a request claims lies below the credential that was
// shown. Two kinds of credentials prove a person: those that the registry
// gives to one, whatever they claim, and those of trusted gateways, whose word
// counts. A person who is proven has their own groups everywhere; their
// conversations and projects are nobody else's even so.
//
// upstream is the name of one that is not an API's own; empty for those. In
// multi mode it is part of what a credential is worth: another server may take
// the same one for somebody else, or take any.
func (id *Settings) Identify(cl *Claims, upstream string) (c Caller) {
	cl.verify(id.OpenWebUI)
	var room [2]string
	var shown credentials // of one person they say nothing
	if id.Multi {
		shown = credentialsOf(cl.h, room[:0])
		cl.headersOnly = !id.BodyUsers && id.trusts(shown)
	}
	w := &c.Who
	for kind, field := range [kinds]*string{&w.Session, &w.User, &w.Workspace, &w.Agent, &w.SystemActor} {
		*field, c.Why[kind] = cl.claim(kind)
	}
	if strings.HasPrefix(c.Why[User], "body ") && strings.TrimPrefix(w.User, "user:") == strings.TrimPrefix(w.Session, "session:") {
		w.User, c.Why[User] = "", "" // some clients send their conversation as user
	}
	c.Temporary = bytes.HasPrefix(cl.values[headerIDs[openWebUIChat]], []byte("local:"))
	var person *Person
	switch {
	case !id.Multi:
		person = cl.registered(id.People, &c)
		c.Known, c.Foreign = true, FromWeb(cl.h)
		if w.User == "" {
			w.User, c.Why[User] = id.Owner, whyOwner
			person = id.People.Registered(w.User)
		}
	case len(shown) > 0:
		person = id.tenant(cl, &c, shown, upstream)
	}
	if person != nil {
		w.User, c.Off, c.Doubted = person.Memory(), c.Off || person.Off, person.Doubted && !person.Off
	}
	if id.Multi && w.Proven {
		w.SetPerson()
	}
	if cl.contradicts(c.Why[User] == whyRegistry) {
		c.Known, c.Contradicts = false, true
	}
	return c
}

// SessionOfPrompt reports whether the session stands in the client's prompt.
func (c *Caller) SessionOfPrompt() bool { return strings.HasPrefix(c.Why[Session], "prompt ") }

// trusts reports whether a credential is a gateway's whose word counts.
func (id *Settings) trusts(shown credentials) bool {
	_, trusted := id.Trusted[shown.single()]
	return trusted
}

// tenant finds out, in multi mode, what a credential proves. It returns the
// person, as far as they are registered. A name that nobody vouches for is not
// looked up: the answer would tell anybody who is registered, and who wants no
// memory.
func (id *Settings) tenant(cl *Claims, c *Caller, shown credentials, upstream string) *Person {
	w := &c.Who
	c.Known = true
	w.SetCredentials(upstream, shown...)
	if person := id.People.byKey(shown.single()); person != nil {
		w.Proven, c.Vouched, c.Why[User] = true, true, whyRegistry
		return person
	}
	if id.trusts(shown) {
		w.Proven, c.Vouched = w.User != "", true
		c.Known = w.User != "" || w.SystemActor != ""
		return cl.registered(id.People, c)
	}
	if w.User == "" {
		w.User, c.Why[User] = "user:credential", whyCredential
	}
	return nil
}

// Claim is one thing that is known of a caller, and why.
type Claim struct {
	What string `json:"what"`
	Key  string `json:"key,omitempty"`
	Why  string `json:"why"`
}

// Claims are all that is known of a caller, in the order of the tables.
func (c *Caller) Claims() []Claim {
	w := &c.Who
	list := make([]Claim, 0, kinds)
	for kind, key := range [kinds]string{w.Session, w.User, w.Workspace, w.Agent, w.SystemActor} {
		claim := Claim{What: tables[kind].What, Key: key, Why: c.Why[kind]}
		switch {
		case claim.Why == "" && kind == Session:
			claim.Why = "nothing names it: what was said tells which conversation goes on"
		case key == "":
			claim.Why = "nothing names one"
		}
		list = append(list, claim)
	}
	return list
}
