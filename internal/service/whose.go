package service

import (
	"context"
	"fmt"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// me is what the person of single mode calls themselves.
const me = "me"

// Owner is the person of single mode.
func (sv *Service) Owner() string { return sv.o.Owner }

// Multi reports whether every credential is its own tenant.
func (sv *Service) Multi() bool { return sv.o.Multi }

// Whose says in words whose memory a selector means.
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
		{"the project ", shortWorkspace(s.Workspace)}, {"", strings.TrimPrefix(s.User, "user:")}, {"the credential ", s.Credential},
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

// shortWorkspace is a workspace's key as people call it.
func shortWorkspace(key string) string {
	for _, prefix := range []string{graphiti.RepoPrefix + "github.com/", graphiti.RepoPrefix, graphiti.PathPrefix} {
		if short, ok := strings.CutPrefix(key, prefix); ok {
			return short
		}
	}
	return key
}

// keptFor says in words whose a scope of somebody is.
func (sv *Service) keptFor(scope graphiti.Scope, who graphiti.Who, group string) string {
	person := strings.TrimPrefix(who.User, "user:")
	if who.User == sv.o.Owner && !sv.o.Multi {
		person = "you"
	}
	switch {
	case scope == graphiti.ScopeWorkspace && who.Workspace != "":
		return "project " + shortWorkspace(who.Workspace)
	case scope == graphiti.ScopeSession && who.Session != "":
		return "session " + strings.TrimPrefix(who.Session, "session:")
	case scope == graphiti.ScopeAgent && who.Agent != "":
		return "the agent " + who.Agent + " of " + person
	case scope == graphiti.ScopeUser && person != "":
		return person
	}
	return "the group " + group
}

// markEmpty notes which of the groups hold nothing: they are only where
// something would be written. Of one that is not known because the memory does
// not answer it is not said.
func (sv *Service) markEmpty(ctx context.Context, list []ledger.Owned) {
	known, err := sv.o.Pipeline.Owned(ctx, "")
	if err != nil {
		return
	}
	has := make(map[string]bool, len(known))
	for _, k := range known {
		has[k.Group] = true
	}
	for i := range list {
		o := &list[i]
		if has[o.Group] && o.Session == "" || sv.o.State.Generations.Blocks(o.Group) {
			continue
		}
		there, err := sv.holds(ctx, ledger.Part{Group: o.Group, Session: o.Session, Owner: o.Owner})
		o.Empty = err == nil && !there
	}
}

// withRemedy says what to do about a call to the memory that failed.
func withRemedy(err error) error {
	if err == nil {
		return nil
	}
	if to := graphiti.Remedy(err); to != "" {
		return fmt.Errorf("%w; to do: %s", err, to)
	}
	return err
}
