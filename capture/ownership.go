package capture

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// withOwners returns turns after the notes on their groups that have none yet.
func (p *Pipeline) withOwners(turns ...ledger.Turn) (list []ledger.Turn) {
	named := p.opts().Named
	for i := range turns {
		for _, target := range turns[i].Targets {
			if n, ok := ownership(&turns[i], target, named); ok && !p.Kept(n.ID, n.Targets) {
				list = append(list, n)
			}
		}
	}
	return append(list, turns...)
}

// ownership returns a note on the owner of a group. ok is false unless the configuration
// names the owner: a claim in a request is not enough. The note's ID depends on the group
// alone, so each group gets it once.
func ownership(t *ledger.Turn, target graphiti.Target, named func(string) (string, bool)) (ledger.Turn, bool) {
	if named == nil {
		return ledger.Turn{}, false
	}
	owner, ok := named(t.Owner)
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
		ID: ledger.DerivedID("ownership", target.Group), Kind: graphiti.KindOwnershipContext, Session: t.Session, Owner: t.Owner, Workspace: t.Workspace,
		User: "This memory belongs to " + owner + ". It is about " + of + ".",
		Said: t.Said, Answered: now, Client: "graphiti-proxy", Targets: []graphiti.Target{target}, Generation: t.Generation, Standalone: true,
	}, true
}
