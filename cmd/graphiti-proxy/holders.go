package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// Why somebody who is known is not let in, as they read it.
var (
	errGateway   = errors.New("this is the key of a gateway (identity.trusted_keys), which speaks for many people, and nobody is named: the gateway names the person in X-Graphiti-User of each call, or in another header of docs/identity.md; on a page use a key of your own, or admin.token")
	errTwoNamed  = errors.New("the headers that name the person contradict each other, or are not signed with identity.openwebui_jwt_secret: name one person in one header")
	errDoubted   = errors.New("it is not certain that this memory is yours: one of your keys, or your id, had another owner; an operator can confirm you, graphiti-proxy status says how")
	errMemoryOff = errors.New("your memory is turned off (memoryEnabled in identity.users_file): nothing is kept of you, and there is nothing to see")
)

// holderWaits bounds what finding somebody waits for the state.
const holderWaits = 2 * time.Second

// holder finds whom a credential proves, by its fingerprint, as a request with it would
// be identified: a registered person, or itself, once an upstream has accepted it.
func (r *remembering) holder(ctx context.Context, fingerprint string, head http.Header) (c service.Caller, err error) {
	cfg := r.live.Load()
	id, _, err := r.callers.settings(cfg)
	if err != nil {
		return c, err
	}
	switch person, gateway := id.Holder(fingerprint); {
	case gateway:
		return asserted(&id, fingerprint, head)
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

// asserted finds the person whom a trusted gateway names in the head of a call, as in a
// request with the same head. They are never an operator: a name is no proof of that.
func asserted(id *identity.Settings, fingerprint string, head http.Header) (c service.Caller, err error) {
	switch found := id.Asserted(head); {
	case found.Contradicts:
		return c, errTwoNamed
	case !found.Vouched || !found.Who.Proven:
		return c, errGateway
	case found.Off:
		return c, errMemoryOff
	case found.Doubted:
		return c, errDoubted
	default:
		user := found.Who.User
		name := strings.TrimPrefix(user, "user:") + ", named by the gateway sha256:" + fingerprint[:12] + "…"
		return service.Caller{Name: name, Own: service.Selector{User: user}}, nil
	}
}
