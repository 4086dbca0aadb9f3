package service

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Owned returns the turns, preceded by a note on the owner of each group that has no such
// note yet.
func (sv *Service) Owned(turns []ledger.Turn) []ledger.Turn {
	list := make([]ledger.Turn, 0, 2*len(turns))
	for i := range turns {
		for _, target := range turns[i].Targets {
			if o, ok := sv.ownership(&turns[i], target); ok && !sv.o.Pipeline.Kept(o.ID, o.Targets) {
				list = append(list, o)
			}
		}
	}
	return append(list, turns...)
}

// ownership returns a note on the owner of a group. ok is false unless the configuration
// names the owner: a claim in a request is not enough. The note's ID depends on the group
// alone, so each group gets it once.
func (sv *Service) ownership(t *ledger.Turn, target graphiti.Target) (ledger.Turn, bool) {
	owner, ok := sv.named(t.Owner)
	if !ok {
		return ledger.Turn{}, false
	}
	of := map[graphiti.Scope]string{
		graphiti.ScopeSession:   "one of their conversations",
		graphiti.ScopeWorkspace: "one workspace, as they work in it", // a request may claim any workspace
		graphiti.ScopeUser:      "themselves, over all projects and clients",
		graphiti.ScopeAgent:     "one agent's view of them",
	}[target.Scope]
	if of == "" {
		return ledger.Turn{}, false
	}
	now := time.Now()
	return ledger.Turn{
		ID: digest("ownership", target.Group), Kind: graphiti.KindOwnershipContext, Session: t.Session, Owner: t.Owner, Workspace: t.Workspace,
		User: "This memory belongs to " + owner + ". It is about " + of + ".",
		Said: t.Said, Answered: now, Client: "graphiti-proxy", Targets: []graphiti.Target{target}, Generation: t.Generation, Standalone: true,
	}, true
}

// named returns the name of a person in the configuration.
func (sv *Service) named(key string) (string, bool) {
	if p := sv.o.People.Registered(key); p != nil {
		if p.Name != "" {
			return p.Name + " (" + key + ")", true
		}
		return key, true
	}
	return key, !sv.o.Multi && key == sv.o.Owner
}
