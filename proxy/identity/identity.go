package identity

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// Settings says how callers are identified.
type Settings struct {
	Multi     bool   // every credential is its own tenant
	Owner     string // the person in single mode, a canonical key
	Trusted   Fingerprints
	BodyUsers bool // behind a trusted credential, the body and the query may name the person too
	People    *Registry
	OpenWebUI string            // the secret of Open WebUI's tokens; empty: they are not believed
	Places    *workspace.Places // finds the repositories of this machine; nil: there are none
}

// Caller is who a request is from, and why we think so.
type Caller struct {
	Who       graphiti.Who
	Known     bool // the request may have a memory: somebody is named, or proven
	Vouched   bool // the operator has configured the credential
	Off       bool // the operator has turned the person's memory off
	Temporary bool // nothing of the request is to be kept
	Doubted   bool // the person must be confirmed before they have a memory (see Doubt)

	// Contradicts says that a source that counts has two different values, or a
	// signature that is not valid.
	Contradicts bool

	Why [kinds]string // the source of each key in Who, by kind; empty: it has none
}

// Reasons in Caller.Why that are no source of a table.
const (
	whyOwner      = "identity.owner"
	whyCredential = "the credential"
	whyRegistry   = "the credential, which identity.users_file gives to this person"
)

// Identify says who sent a request with these claims. It changes cl.
//
// In multi mode everything that a request claims belongs to the tenant of its
// credential. Two kinds of credentials prove a person: one that the registry gives
// to a person, whatever the request claims, and one of a trusted gateway, which is
// believed when it names a person. A proven person has the same groups behind every
// credential; their conversations and projects are still theirs alone.
//
// upstream is the name of a configured upstream; empty for an API's own server. In
// multi mode it is part of the tenant: another server may accept the same credential
// from somebody else, or any credential at all.
func (id *Settings) Identify(cl *Claims, upstream string) (c Caller) {
	cl.verify(id.OpenWebUI)
	var buf [2]string
	var shown credentials // none in single mode, where they tell nobody apart
	if id.Multi {
		shown = credentialsOf(cl.h, buf[:0])
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
		c.Known = true
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

// SessionOfPrompt reports whether the client's prompt names the session.
func (c *Caller) SessionOfPrompt() bool { return strings.HasPrefix(c.Why[Session], "prompt ") }

// trusts reports whether the only credential is that of a trusted gateway.
func (id *Settings) trusts(shown credentials) bool {
	_, gateway := id.Trusted[shown.single()]
	return gateway
}

// tenant finds out, in multi mode, what the credentials prove. It returns the
// registered person; nil: nobody. It does not look up a name that nobody vouches
// for: the answer would tell any caller who is registered, and whose memory is off.
func (id *Settings) tenant(cl *Claims, c *Caller, shown credentials, upstream string) *Person {
	w := &c.Who
	c.Known = true
	w.SetCredentials(upstream, shown...)
	person, gateway := id.Holder(shown.single())
	if person != nil {
		w.Proven, c.Vouched, c.Why[User] = true, true, whyRegistry
		return person
	}
	if gateway {
		w.Proven, c.Vouched = w.User != "", true
		c.Known = w.User != "" || w.SystemActor != ""
		return cl.registered(id.People, c)
	}
	if w.User == "" {
		w.User, c.Why[User] = "user:credential", whyCredential
	}
	return nil
}

// Holder says, in multi mode, whom a credential proves by itself, by its fingerprint: a
// registered person, or a trusted gateway, which speaks for many people. Of any other it
// returns neither: that is a tenant, and says nothing of a person.
func (id *Settings) Holder(fingerprint string) (person *Person, gateway bool) {
	if person = id.People.byKey(fingerprint); person != nil {
		return person, false
	}
	_, gateway = id.Trusted[fingerprint]
	return nil, gateway
}

// Asserted says who sent a call of the admin side, from its head alone. The credentials
// in the head count as in a request.
func (id *Settings) Asserted(head http.Header) Caller {
	var h fasthttp.RequestHeader
	for name, values := range head {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return id.Identify(new(Claims).ReadHead(&h), "")
}

// Claim is one key of a caller, and the source that named it.
type Claim struct {
	What string `json:"what"`
	Key  string `json:"key,omitempty"`
	Why  string `json:"why"`
}

// Claims returns a Claim of each kind, in the order of the tables. Why says so if
// nothing names one.
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
