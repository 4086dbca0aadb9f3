package identity

import (
	"strings"
	"sync/atomic"
)

// Person is someone whom the operator has registered.
type Person struct {
	ID         string
	Name       string            // for people; may be empty
	Admin      bool              // may use the admin side
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

// Resolve returns the key of the person that a key is registered for, or the
// key itself.
func (r *Registry) Resolve(key string) string {
	if p := r.Registered(key); p != nil {
		return "user:" + p.ID
	}
	return key
}

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

// Registered is the person whom a key of a user names, such as user:josh,
// user:discord:123 or github_login:octocat; nil: nobody who is registered.
func (r *Registry) Registered(key string) *Person {
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
