package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// WithOwners is a pipeline that stores a note on the owner of each group before the first turn of the
// group.
type WithOwners struct {
	*Pipeline
	Named func(owner string) (name string, ok bool) // returns the name of an owner in the configuration
}

// Add stores a turn after the notes on its groups.
func (o WithOwners) Add(ctx context.Context, t ledger.Turn) error {
	return o.AddTurns(ctx, append(o.notes(&t), t))
}

// Hold holds a turn, and stores the notes on its groups.
func (o WithOwners) Hold(ctx context.Context, t ledger.Turn, why *Doubt) (graphiti.Fate, error) {
	if err := o.AddTurns(ctx, o.notes(&t)); err != nil {
		return graphiti.Fate{}, err
	}
	return o.Pipeline.Hold(ctx, t, why)
}

// notes returns the notes on the groups of a turn that have none yet.
func (o WithOwners) notes(t *ledger.Turn) (list []ledger.Turn) {
	for _, target := range t.Targets {
		if n, ok := o.note(t, target); ok && !o.Kept(n.ID, n.Targets) {
			list = append(list, n)
		}
	}
	return list
}

// note returns a note on the owner of a group. ok is false unless the configuration
// names the owner: a claim in a request is not enough. The note's ID depends on the group
// alone, so each group gets it once.
func (o WithOwners) note(t *ledger.Turn, target graphiti.Target) (ledger.Turn, bool) {
	owner, ok := o.Named(t.Owner)
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
