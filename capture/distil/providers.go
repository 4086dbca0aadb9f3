package distil

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	recent       = 12 * time.Hour // age up to which a credential is used
	maxProviders = 256            // people
)

// errNoProvider means that the model cannot be asked until a person's next request.
var errNoProvider = errors.New("no recent request has shown a provider and its credential")

// Providers remembers the provider and credential of each person's latest request, in RAM
// only. The zero value is empty. It is safe for concurrent use.
type Providers struct {
	mu   sync.Mutex // protects seen
	seen map[string]*provider
}

type provider struct {
	url, key string
	at       time.Time
	endpoint *Endpoint // nil before the first request
}

// Saw reports the Chat Completions address and the credential of a person's request.
func (p *Providers) Saw(owner, url, key string) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.seen[owner]; one != nil && one.url == url && one.key == key {
		one.at = now
		return
	}
	if p.seen == nil || len(p.seen) >= maxProviders {
		p.seen = make(map[string]*provider) // the next requests show them again
	}
	p.seen[owner] = &provider{url: url, key: key, at: now}
}

// Model returns a model of the providers. A person's messages reach only that person's
// provider, with that person's credential.
func (p *Providers) Model(name string) Model { return upstream{p, name} }

type upstream struct {
	*Providers
	model string
}

// Ask implements Model.
func (u upstream) Ask(ctx context.Context, owner, system, question string) (answer string, tokens int, err error) {
	u.mu.Lock()
	one := u.seen[owner]
	if one == nil || time.Since(one.at) > recent {
		delete(u.seen, owner)
		u.mu.Unlock()
		return "", 0, errNoProvider
	}
	if one.endpoint == nil {
		one.endpoint = NewEndpoint(one.url, u.model, one.key)
	}
	e := one.endpoint
	u.mu.Unlock()
	return e.Ask(ctx, owner, system, question)
}
