package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// Why somebody who is known is not let in, as they read it.
var (
	errGateway   = errors.New("this is the key of a gateway (identity.trusted_keys), which may name anybody: it does not say who you are; use a key of your own, or admin.token")
	errDoubted   = errors.New("it is not certain that this memory is yours: one of your keys, or your id, had another owner; an operator can confirm you, graphiti-proxy status says how")
	errMemoryOff = errors.New("your memory is turned off (memoryEnabled in identity.users_file): nothing is kept of you, and there is nothing to see")
)

// holderWaits bounds what finding somebody waits for the state.
const holderWaits = 2 * time.Second

// holder finds whom a credential proves, by its fingerprint, as a request with it would
// be identified: a registered person, or itself, once an upstream has accepted it.
func (r *remembering) holder(ctx context.Context, fingerprint string) (c service.Caller, err error) {
	cfg := r.live.Load()
	id, _, err := r.callers.settings(cfg)
	if err != nil {
		return c, err
	}
	switch person, gateway := id.Holder(fingerprint); {
	case gateway:
		return c, errGateway
	case person == nil:
	case person.Admin && !person.Doubted: // also one who wants no memory of their own
		return service.Caller{Operator: true, Name: person.ID}, nil
	case person.Off:
		return c, errMemoryOff
	case person.Doubted:
		return c, errDoubted
	default:
		return service.Caller{Name: person.ID, Own: service.Selector{User: person.Memory()}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, holderWaits)
	defer cancel()
	// Of several upstreams with a name that have accepted it, each has a tenant of its own:
	// theirs is the one of an API's own server, else of the first by name.
	for _, upstream := range append([]string{""}, slices.Sorted(maps.Keys(cfg.Named))...) {
		var w graphiti.Who
		w.SetCredentials(upstream, fingerprint)
		if r.state.Tenants.Accepted(ctx, w.Tenant) {
			credential := "sha256:" + fingerprint
			if upstream != "" {
				credential = upstream + "/" + credential
			}
			return service.Caller{Name: "the credential sha256:" + fingerprint[:12] + "…", Own: service.Selector{Credential: credential}}, nil
		}
	}
	return c, admin.ErrUnknown
}
