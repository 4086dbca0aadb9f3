package identity

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// Settings configures the identification of callers.
type Settings struct {
	Multi     bool   // every credential is its own tenant
	Owner     string // the person in single mode, a canonical key
	Trusted   Fingerprints
	BodyUsers bool // with a trusted credential, or in single mode, body and query may name the person too
	People    *Registry
	OpenWebUI string            // secret of Open WebUI's tokens; "" rejects all tokens
	Places    *workspace.Places // finds local repositories; nil finds none
}

// Caller is the identity of a request, with its evidence.
type Caller struct {
	Who       graphiti.Who
	Known     bool // a person is named or proven, so memory is possible
	Vouched   bool // the operator has configured the credential
	Off       bool // the operator has turned the person's memory off
	Temporary bool // no part of the request may be stored
	Doubted   bool // an operator must confirm the person first (see Doubt)

	// Contradicts is true if a source in use has two different values, or an invalid
	// signature.
	Contradicts bool

	Why [kinds]string // source of each key in Who, by kind, or ""
}

// Values of Caller.Why outside the tables of sources.
const (
	whyOwner      = "identity.owner"
	whyCredential = "the credential"
	whyRegistry   = "the credential, assigned to this person in identity.users_file"
)

// Identify returns the caller of a request with these claims. It changes cl.
//
// In multi mode the tenant of the credential owns all claims of the request. Two kinds of
// credentials prove a person: a credential that the registry assigns to a person,
// regardless of the request's claims, and a trusted gateway's if the request names a
// person. A proven person has
// the same groups with every credential; their conversations and projects stay private to
// them.
//
// upstream is the name of a configured upstream, or "" for an API's own server. In multi
// mode it is part of the tenant: another server may accept the same credential from
// another caller, or any credential at all.
func (id *Settings) Identify(cl *Claims, upstream string) (c Caller) {
	cl.verify(id.OpenWebUI)
	var buf [2]string
	var shown credentials // empty in single mode, where credentials do not separate callers
	cl.headersOnly = !id.BodyUsers
	if id.Multi {
		shown = credentialsOf(cl.h, buf[:0])
		cl.headersOnly = !id.BodyUsers && id.trusts(shown)
	}
	w := &c.Who
	for kind, field := range [kinds]*string{&w.Session, &w.User, &w.Workspace, &w.Agent, &w.SystemActor} {
		*field, c.Why[kind] = cl.claim(kind)
	}
	if strings.HasPrefix(c.Why[User], "body ") && strings.TrimPrefix(w.User, "user:") == strings.TrimPrefix(w.Session, "session:") {
		w.User, c.Why[User] = "", "" // some clients send their conversation ID as the user
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
		w.User, c.Off, c.Doubted = person.Memory(), c.Off || person.Off, person.Doubt != nil && !person.Off
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

// trusts reports whether the only credential belongs to a trusted gateway.
func (id *Settings) trusts(shown credentials) bool {
	_, gateway := id.Trusted[shown.single()]
	return gateway
}

// tenant determines the proven tenant or person of the credentials in multi mode, and
// returns the registered person or nil. It never reads the registry by an unproven name: the
// answer would reveal registered people, and which of them turned memory off.
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

// Holder returns, in multi mode, the registered person that a credential fingerprint
// proves, or whether it belongs to a trusted gateway, which acts for many people. Any
// other credential is a tenant without a person.
func (id *Settings) Holder(fingerprint string) (person *Person, gateway bool) {
	if person = id.People.byKey(fingerprint); person != nil {
		return person, false
	}
	_, gateway = id.Trusted[fingerprint]
	return nil, gateway
}

// Asserted returns the caller of an admin request, from its header alone. Credentials
// count as in a model request.
func (id *Settings) Asserted(head http.Header) Caller {
	var h fasthttp.RequestHeader
	for name, values := range head {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return id.Identify(new(Claims).ReadHead(&h), "")
}
