package distil

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	recent       = 12 * time.Hour // age up to which a credential is used
	maxProviders = 1024           // of all people
)

// errNoProvider means that the model cannot be asked until a person's next request to it.
var errNoProvider = errors.New("no recent request has shown the provider of some messages and its credential")

// Providers remembers the providers of each person's latest requests and their credentials, in
// RAM only. The zero value is empty. It is safe for concurrent use.
type Providers struct {
	mu   sync.Mutex // protects seen
	seen map[ofPerson]*provider
}

// ofPerson names a provider of a person.
type ofPerson struct{ owner, id string }

type provider struct {
	url, key string
	at       time.Time
	endpoint *Endpoint // nil before the first request
}

// Saw reports a provider's id, the address of its Chat Completions API, and the credential of a
// person's request.
func (p *Providers) Saw(owner, id, url, key string) {
	now, of := time.Now(), ofPerson{owner, id}
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.seen[of]; one != nil && one.url == url && one.key == key {
		one.at = now
		return
	}
	if p.seen == nil || len(p.seen) >= maxProviders {
		p.seen = make(map[ofPerson]*provider) // the next requests show them again
	}
	p.seen[of] = &provider{url: url, key: key, at: now}
}

// Model returns a model of the providers. A message reaches only the provider that had it, with
// its person's credential.
func (p *Providers) Model(name string) Model { return upstream{p, name} }

type upstream struct {
	*Providers
	model string
}

// Ask implements Model.
func (u upstream) Ask(ctx context.Context, b *graphiti.Batch, system, question string) (answer string, tokens int, err error) {
	of := ofPerson{b.Owner, b.Provider}
	u.mu.Lock()
	one := u.seen[of]
	if one == nil || time.Since(one.at) > recent {
		delete(u.seen, of)
		u.mu.Unlock()
		return "", 0, errNoProvider
	}
	if one.endpoint == nil {
		one.endpoint = NewEndpoint(one.url, u.model, func() string { return one.key })
	}
	e := one.endpoint
	u.mu.Unlock()
	return e.Ask(ctx, b, system, question)
}
