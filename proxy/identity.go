package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// Identity says how callers are told apart.
type Identity struct {
	Multi     bool   // every credential is its own tenant
	Owner     string // the person in single mode, a canonical key
	Trusted   Fingerprints
	BodyUsers bool // a trusted credential's person may be named in the body and the query too
	People    *Registry
	Places    *workspace.Places // finds the repositories of this machine; nil: there are none
}

// Fingerprints is a set of credentials, of which only hashes are held.
type Fingerprints map[string]struct{}

// NewFingerprints reads credentials, or "sha256:" and the hex digits of one.
func NewFingerprints(keys []string) (Fingerprints, error) {
	f := make(Fingerprints)
	for i, k := range keys {
		digits, hashed := strings.CutPrefix(k, "sha256:")
		if !hashed {
			f[graphiti.Fingerprint([]byte(k))] = struct{}{}
			continue
		}
		if b, err := hex.DecodeString(digits); err != nil || len(b) != sha256.Size {
			return nil, fmt.Errorf("identity.trusted_keys: item %d begins with sha256: and does not go on with 64 hex digits", i+1)
		}
		f[strings.ToLower(digits)] = struct{}{}
	}
	return f, nil
}

// Person is someone whom the operator has registered.
type Person struct {
	ID         string
	Name       string            // for people; may be empty
	Off        bool              // nothing is recalled and nothing kept
	Identities map[string]string // ids by platform
	Keys       []string          // SHA-256 of credentials, in hex digits
}

// Registry knows the people who are registered. Its zero value, and nil, know
// nobody. It is safe for concurrent use.
type Registry struct{ people atomic.Pointer[people] }

type people struct {
	byID, byKey map[string]*Person
	byIdentity  map[[2]string]*Person // platform and id
}

// Set replaces all people at once.
func (r *Registry) Set(list []Person) {
	p := &people{make(map[string]*Person), make(map[string]*Person), make(map[[2]string]*Person)}
	for i := range list {
		one := &list[i]
		p.byID[one.ID] = one
		for _, k := range one.Keys {
			p.byKey[strings.ToLower(strings.TrimPrefix(k, "sha256:"))] = one
		}
		for platform, id := range one.Identities {
			p.byIdentity[identityOf(platform, id)] = one
		}
	}
	r.people.Store(p)
}

// Resolve is the key of a person: that of whoever is registered under it.
func (r *Registry) Resolve(key string) string {
	if p := r.named(key); p != nil {
		return "user:" + p.ID
	}
	return key
}

// Registered is the person whom a key of a user names; nil: nobody who is
// registered.
func (r *Registry) Registered(key string) *Person { return r.named(key) }

// byKey is the person whose credential has a fingerprint; nil: nobody's.
func (r *Registry) byKey(fingerprint string) *Person {
	if r == nil {
		return nil
	}
	if p := r.people.Load(); p != nil {
		return p.byKey[fingerprint]
	}
	return nil
}

// named is the person whom a key of a user names, such as user:josh,
// user:discord:123 or github_login:octocat; nil: nobody who is registered.
func (r *Registry) named(key string) *Person {
	if r == nil {
		return nil
	}
	p := r.people.Load()
	if p == nil {
		return nil
	}
	if login, ok := strings.CutPrefix(key, "github_login:"); ok {
		return p.byIdentity[identityOf("github", login)]
	}
	name := strings.TrimPrefix(key, "user:")
	if one := p.byID[name]; one != nil {
		return one
	}
	if platform, id, ok := strings.Cut(name, ":"); ok {
		return p.byIdentity[identityOf(platform, id)]
	}
	return nil
}

// identityOf is how an id on a platform is looked up: logins of GitHub and
// e-mail addresses are the same in any case.
func identityOf(platform, id string) [2]string {
	if platform = strings.ToLower(platform); platform == "github" || strings.Contains(id, "@") {
		id = strings.ToLower(id)
	}
	return [2]string{platform, id}
}

// Caller is who a request is from, and why that is thought.
type Caller struct {
	Who       graphiti.Who
	Known     bool // there is somebody whose memory it could be
	Vouched   bool // the operator has named the credential
	Off       bool // the person wants no memory
	Temporary bool // nothing is to be kept
	Foreign   bool // a page of the web may have sent it, which is not the person

	// Contradicts says that a header which names somebody or something stands
	// twice, with different values.
	Contradicts bool

	Why [claimKinds]string
}

// reasons that are no source of a table.
const (
	whyOwner      = "identity.owner"
	whyCredential = "the credential"
	whyRegistry   = "the credential, which identity.users_file gives to this person"
)

// who tells the caller of a request.
//
// In multi mode whatever a request claims lies below the credential that was
// shown. Two kinds of credentials prove a person: those that the registry
// gives to one, whatever they claim, and those of trusted gateways, whose word
// counts. A person who is proven has their own groups everywhere; their
// conversations and projects are nobody else's even so.
//
// cl is what it works with, given so that it can be used again.
func (id *Identity) who(cl *claimant, h *fasthttp.RequestHeader, conv *inject.Conversation) (c Caller) {
	*cl = claimant{h: h, conv: conv}
	cl.collect()
	shown := credentialsOf(h)
	cl.headersOnly = id.Multi && !id.BodyUsers && id.trusts(&shown)
	w := &c.Who
	for kind, field := range [claimKinds]*string{&w.Session, &w.User, &w.Workspace, &w.Agent, &w.SystemActor} {
		*field, c.Why[kind] = cl.claim(kind)
	}
	if strings.HasPrefix(c.Why[claimUser], "body ") && strings.TrimPrefix(w.User, "user:") == strings.TrimPrefix(w.Session, "session:") {
		w.User, c.Why[claimUser] = "", "" // some clients send their conversation as user
	}
	c.Temporary = bytes.HasPrefix(cl.values[headerIDs[openWebUIChat]], []byte("local:"))
	person := cl.registered(id.People, &c)
	switch {
	case !id.Multi:
		c.Known, c.Foreign = true, fromWeb(h)
		if w.User == "" {
			w.User, c.Why[claimUser] = id.Owner, whyOwner
			person = id.People.named(w.User)
		}
	case len(shown.fingerprints) > 0:
		person = id.tenant(&c, &shown, person)
	}
	if person != nil {
		w.User, c.Off = "user:"+person.ID, c.Off || person.Off
	}
	if id.Multi && w.Proven {
		w.SetPerson()
	}
	if cl.contradicts(c.Why[claimUser] == whyRegistry) {
		c.Known, c.Contradicts = false, true
	}
	return c
}

// trusts reports whether a credential is a gateway's whose word counts.
func (id *Identity) trusts(shown *credentials) bool {
	_, trusted := id.Trusted[shown.single()]
	return trusted
}

// tenant finds out, in multi mode, what a credential proves. It returns the
// person, as far as they are registered.
func (id *Identity) tenant(c *Caller, shown *credentials, named *Person) *Person {
	w := &c.Who
	c.Known = true
	w.SetCredentials(shown.fingerprints...)
	if shown.spells {
		w.OldTenant = ""
	}
	if person := id.People.byKey(shown.single()); person != nil {
		w.Proven, c.Vouched, c.Why[claimUser] = true, true, whyRegistry
		return person
	}
	if id.trusts(shown) {
		w.Proven, c.Vouched = w.User != "", true
		c.Known = w.User != "" || w.SystemActor != ""
		return named
	}
	if w.User == "" {
		w.User, c.Why[claimUser] = "user:credential", whyCredential
	}
	c.Off = named != nil && named.Off // whoever names them
	return nil                        // a name that nobody vouches for stays below the credential
}

// rootOf is the fingerprint of a conversation of a caller before anything was
// said. A bot shares no conversation with the person whose credential it has.
func rootOf(w *graphiti.Who) inject.Fingerprint {
	speaker := w.User
	if w.SystemActor != "" {
		speaker = "system:" + w.SystemActor
	}
	return inject.Root(w.Tenant, speaker)
}

// claim is the first thing of a kind that the request says and that can be
// one, as a key, and where it says so. What it says in two ways is nothing.
func (cl *claimant) claim(kind int) (key, why string) {
	t := &tables[kind]
	for i := range t.Sources {
		s := &t.Sources[i]
		if kind == claimUser && cl.headersOnly && s.header == "" {
			continue
		}
		v := cl.value(s)
		if v == "" || s.elsewhere && cl.at.repo.Dir != "" {
			continue
		}
		if cl.twice(s) {
			cl.unclear[kind] = true
			return "", s.Name
		}
		if s.Platform != "" {
			v = "user:" + s.Platform + ":" + v
		}
		if key, ok := t.key(v); ok {
			return key, s.Name
		}
	}
	return "", ""
}

// registered is the person whom the registry has for the user of a caller: by
// the name that counted, else by another name that the request has for the same
// person.
func (cl *claimant) registered(people *Registry, c *Caller) *Person {
	person := people.named(c.Who.User)
	if person != nil || people == nil || c.Who.User == "" {
		return person
	}
	list := tables[claimUser].Sources
	at := slices.IndexFunc(list, func(s Source) bool { return s.Name == c.Why[claimUser] })
	for _, s := range list[at+1:] {
		if !s.same {
			break
		}
		if cl.twice(&s) {
			cl.unclear[claimUser] = true
			return nil
		}
		if person = people.named("user:" + s.Platform + ":" + cl.value(&s)); person != nil {
			return person
		}
	}
	return nil
}

// all are the keys of everything of a kind that the request says.
func (cl *claimant) all(kind int) (keys []string) {
	t := &tables[kind]
	for i := range t.Sources {
		if key, ok := t.key(cl.value(&t.Sources[i])); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// credentials are the secrets that a caller shows to the upstream.
type credentials struct {
	fingerprints []string // distinct; none: nothing was shown
	spells       bool     // one of them could have another's old tenant
}

// single is the fingerprint of the only one; empty: there are none, or several.
func (s *credentials) single() string {
	if len(s.fingerprints) != 1 {
		return ""
	}
	return s.fingerprints[0]
}

// credentialsOf finds them. Which one of several the upstream looks at is not
// known, so that they count together: whoever lacks one of them is another
// caller.
func credentialsOf(h *fasthttp.RequestHeader) (all credentials) {
	for _, name := range []string{fasthttp.HeaderAuthorization, "X-Api-Key", "Api-Key"} {
		for _, v := range h.PeekAll(name) {
			if name == fasthttp.HeaderAuthorization && len(v) >= 6 && bytes.EqualFold(v[:6], []byte("bearer")) && (len(v) == 6 || v[6] == ' ') {
				v = v[6:]
			}
			if v = bytes.TrimSpace(v); len(v) == 0 {
				continue
			}
			if f := graphiti.Fingerprint(v); !slices.Contains(all.fingerprints, f) {
				all.fingerprints = append(all.fingerprints, f)
			}
			all.spells = all.spells || graphiti.SpellsTenant(v)
		}
	}
	return all
}
