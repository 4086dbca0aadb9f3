package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// me is the name of single mode's person in selectors.
const me = "me"

// Owner returns the person of single mode.
func (sv *Service) Owner() string { return sv.o.Owner }

// Multi reports whether every credential is a tenant.
func (sv *Service) Multi() bool { return sv.o.Multi }

// Whose returns a selector's memory in words.
func (s Selector) Whose() string {
	if key, ok := graphiti.WorkspaceKey(s.Workspace); ok {
		s.Workspace = key
	}
	if s.Own {
		return Selector{Workspace: s.Workspace}.Whose() + " and " + Selector{User: s.User, Credential: s.Credential}.Whose()
	}
	var parts []string
	for _, p := range []struct{ what, value string }{
		{"the group ", s.Group}, {"the session ", strings.TrimPrefix(s.Session, "session:")}, {"the agent ", s.Agent},
		{"the project ", graphiti.ShortWorkspace(s.Workspace)}, {"", strings.TrimPrefix(s.User, "user:")}, {"the credential ", s.Credential},
	} {
		if p.value == me {
			p.value = "you"
		}
		if p.value != "" {
			parts = append(parts, p.what+p.value)
		}
	}
	if len(parts) == 0 {
		return "you"
	}
	return strings.Join(parts, " of ")
}

// keptFor returns the owner of a group in words.
func (sv *Service) keptFor(scope graphiti.Scope, who graphiti.Who, group string) string {
	if who.User == sv.o.Owner && !sv.o.Multi {
		who.User = me
	}
	s := map[graphiti.Scope]Selector{
		graphiti.ScopeWorkspace: {Workspace: who.Workspace}, graphiti.ScopeSession: {Session: who.Session},
		graphiti.ScopeAgent: {Agent: who.Agent, User: who.User}, graphiti.ScopeUser: {User: who.User},
	}[scope]
	if s == (Selector{}) {
		s.Group = group
	}
	return s.Whose()
}

// markEmpty marks groups without messages: the proxy would only write to them. It marks no group
// that the memory cannot list now.
func (r *resolution) markEmpty(ctx context.Context, list []ledger.Owned) {
	for i := range list {
		o := &list[i]
		if o.Session == "" && slices.ContainsFunc(r.known, func(k ledger.Owned) bool { return k.Group == o.Group }) || r.sv.o.State.Generations.Blocks(o.Group) {
			continue
		}
		there, err := r.sv.holds(ctx, ledger.Part{Group: o.Group, Session: o.Session, Owner: o.Owner})
		o.Empty = err == nil && !there
	}
}

// withRemedy adds the remedy to an error of the memory.
func withRemedy(err error) error {
	if err == nil {
		return nil
	}
	if to := graphiti.Remedy(err); to != "" {
		return fmt.Errorf("%w; to do: %s", err, to)
	}
	return err
}

// Named returns the name of a person in the configuration.
func (sv *Service) Named(key string) (string, bool) {
	if p := sv.o.People.Registered(key); p != nil {
		if p.Name != "" {
			return p.Name + " (" + key + ")", true
		}
		return key, true
	}
	return key, !sv.o.Multi && key == sv.o.Owner
}
