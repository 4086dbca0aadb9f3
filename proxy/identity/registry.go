package identity

import (
	"strings"
	"sync/atomic"
)

// Person is a person whom the operator has registered.
type Person struct {
	ID         string
	Name       string            // display name; may be empty
	Admin      bool              // operator: sees and changes everything on the admin side
	Auditor    bool              // sees everything on the admin side except texts, besides their own memory
	Off        bool              // memory is off: neither recall nor capture
	Identities map[string]string // ids by platform
	Keys       []string          // SHA-256 of credentials, as sha256: and hex digits

	// Key is the key of the person's memory, or "" to derive it from ID.
	Key string

	Doubt *Doubt // why the person has no memory until an operator confirms them; nil without a doubt
}

// Memory returns the key of a person's memory.
func (p *Person) Memory() string {
	if p.Key != "" {
		return p.Key
	}
	return "user:" + p.ID
}

// Registry holds the registered people. Its zero value and nil are empty. It is safe for
// concurrent use.
type Registry struct{ people atomic.Pointer[people] }

type people struct {
	list                  []Person
	byID, byKey, byMemory map[string]*Person
	byIdentity            map[[2]string]*Person // platform and id
}

// Set replaces all people at once.
func (r *Registry) Set(list []Person) { r.people.Store(newPeople(list)) }

func newPeople(list []Person) *people {
	p := &people{list, make(map[string]*Person), make(map[string]*Person), make(map[string]*Person), make(map[[2]string]*Person)}
	for i := range list {
		one := &list[i]
		p.byID[one.ID], p.byMemory[one.Memory()] = one, one
		for _, k := range one.Keys {
			p.byKey[fingerprintOf(k)] = one
		}
		for platform, id := range one.Identities {
			p.byIdentity[identityOf(platform, id)] = one
		}
	}
	return p
}

// fingerprintOf returns the fingerprint in an item of Person.Keys.
func fingerprintOf(key string) string { return strings.ToLower(strings.TrimPrefix(key, "sha256:")) }

// People returns all registered people. The caller must not change the slice.
func (r *Registry) People() []Person {
	if p := r.people.Load(); p != nil {
		return p.list
	}
	return nil
}

// Doubts returns the doubts about registered people.
func (r *Registry) Doubts() (list []*Doubt) {
	for _, one := range r.People() {
		if one.Doubt != nil {
			list = append(list, one.Doubt)
		}
	}
	return list
}

// Resolve returns the memory of the person that a user key refers to, or the key itself if
// no registered person matches.
func (r *Registry) Resolve(key string) string {
	if p := r.Registered(key); p != nil {
		return p.Memory()
	}
	return key
}

// byKey returns the person with a credential fingerprint, or nil.
func (r *Registry) byKey(fingerprint string) *Person {
	if r == nil {
		return nil
	}
	if p := r.people.Load(); p != nil {
		return p.byKey[fingerprint]
	}
	return nil
}

// Registered returns the person that a user key refers to, or nil. Examples of keys are
// user:josh, user:discord:123 and github_login:octocat.
func (r *Registry) Registered(key string) *Person {
	if r == nil {
		return nil
	}
	if p := r.people.Load(); p != nil {
		return p.named(key)
	}
	return nil
}

func (p *people) named(key string) *Person {
	if login, ok := strings.CutPrefix(key, "github_login:"); ok {
		if one := p.byIdentity[identityOf("github", login)]; one != nil {
			return one
		}
		return p.byMemory[key]
	}
	name := strings.TrimPrefix(key, "user:")
	if one := p.byID[name]; one != nil {
		return one
	}
	if platform, id, ok := strings.Cut(name, ":"); ok {
		if one := p.byIdentity[identityOf(platform, id)]; one != nil {
			return one
		}
	}
	return p.byMemory["user:"+name]
}

// identityOf returns the lookup key of an ID on a platform. GitHub logins and e-mail
// addresses ignore case.
func identityOf(platform, id string) [2]string {
	if platform = strings.ToLower(platform); platform == "github" || strings.Contains(id, "@") {
		id = strings.ToLower(id)
	}
	return [2]string{platform, id}
}
