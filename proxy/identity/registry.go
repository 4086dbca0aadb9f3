package identity

import (
	"strings"
	"sync/atomic"
)

// Person is someone whom the operator has registered.
type Person struct {
	ID         string
	Name       string            // for people; may be empty
	Admin      bool              // is an operator: sees and changes everything on the admin side
	Off        bool              // nothing is recalled and nothing kept
	Identities map[string]string // ids by platform
	Keys       []string          // SHA-256 of credentials, as sha256: and hex digits

	// Key is the key of their memory, if it is not the one of their id.
	Key string

	Doubted bool // they have no memory until an operator confirms them (see Doubt)
}

// Memory returns the key of a person's memory.
func (p *Person) Memory() string {
	if p.Key != "" {
		return p.Key
	}
	return "user:" + p.ID
}

// Registry knows the people who are registered. Its zero value, and nil, know
// nobody. It is safe for concurrent use.
type Registry struct{ people atomic.Pointer[people] }

type people struct {
	list                  []Person
	byID, byKey, byMemory map[string]*Person
	byIdentity            map[[2]string]*Person // platform and id
}

// Set replaces all people at once. It puts nobody in doubt.
func (r *Registry) Set(list []Person) { r.Take(Judged{people: list}) }

// Take replaces all people at once by those of a Judge.
func (r *Registry) Take(j Judged) { r.people.Store(newPeople(j.people)) }

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

// fingerprintOf returns the fingerprint in an item of a person's keys.
func fingerprintOf(key string) string { return strings.ToLower(strings.TrimPrefix(key, "sha256:")) }

// People returns everybody. The caller must not change the slice.
func (r *Registry) People() []Person {
	if p := r.people.Load(); p != nil {
		return p.list
	}
	return nil
}

// Resolve returns the memory of the registered person whom a key of a user names,
// or the key itself if it names nobody who is registered.
func (r *Registry) Resolve(key string) string {
	if p := r.Registered(key); p != nil {
		return p.Memory()
	}
	return key
}

// byKey returns the person with the credential of a fingerprint; nil: nobody.
func (r *Registry) byKey(fingerprint string) *Person {
	if r == nil {
		return nil
	}
	if p := r.people.Load(); p != nil {
		return p.byKey[fingerprint]
	}
	return nil
}

// Registered returns the registered person whom a key of a user names, such as
// user:josh, user:discord:123 or github_login:octocat; nil: nobody.
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

// identityOf returns the key by which an id on a platform is looked up. It lowers
// the case of GitHub's logins and of e-mail addresses.
func identityOf(platform, id string) [2]string {
	if platform = strings.ToLower(platform); platform == "github" || strings.Contains(id, "@") {
		id = strings.ToLower(id)
	}
	return [2]string{platform, id}
}
