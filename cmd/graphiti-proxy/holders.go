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

// The reasons for refusing a known person, in words for them.
var (
	errGateway   = errors.New("this key belongs to a gateway of many people (identity.trusted_keys), and the request names no person: send the person in X-Graphiti-User, or in another header of docs/identity.md; on a page use a key of your own, or admin.token")
	errTwoNamed  = errors.New("the headers that name the person contradict each other, or are not signed with identity.openwebui_jwt_secret: name one person in one header")
	errDoubted   = errors.New("the owner of this memory is in doubt: one of your keys, or your id, had another owner; an operator can confirm you as graphiti-proxy status explains")
	errMemoryOff = errors.New("your memory is turned off (memoryEnabled in identity.users_file), so there is no memory to show")
)

// holderWaits bounds the wait for the state in a search for a holder.
const holderWaits = 2 * time.Second

// holder returns the owner of a credential, by its fingerprint. It identifies them like a
// request with that credential: a registered person, or the credential itself after an
// upstream has accepted it.
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
	case person.Admin && person.Doubt == nil: // even without a memory of their own
		return service.Caller{Operator: true, Name: person.ID}, nil
	case person.Off:
		return c, errMemoryOff
	case person.Doubt != nil:
		return c, errDoubted
	default:
		return service.Caller{Name: person.ID, Auditor: person.Auditor, Own: service.Selector{User: person.Memory()}}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, holderWaits)
	defer cancel()
	// Each named upstream that has accepted the credential has a tenant of its own. The
	// holder's tenant is that of an API's default server, or else of the first upstream by
	// name.
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

// asserted returns the person that a trusted gateway names in the header of a call, as in a
// request with the same header. The person is never an operator: a name does not prove
// that.
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
