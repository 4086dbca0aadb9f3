package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// WorkRequest is the input of Work.
type WorkRequest struct {
	Selector
	Limit int `json:"limit,omitempty" help:"how many turns"`
}

// Check returns an error for an invalid limit.
func (r *WorkRequest) Check() error { return CheckLimit(r.Limit) }

// Worked is the work of agents, from their tool calls. Its lines quote foreign text.
type Worked struct {
	Turns    []WorkedTurn `json:"turns"` // the latest first
	AllTurns int          `json:"all_turns"`
	Groups   []string     `json:"-"`
}

// WorkedTurn is the work of one turn.
type WorkedTurn struct {
	ID           string   `json:"id"`
	Conversation string   `json:"conversation"` // hash
	Time         string   `json:"time"`
	Lines        []string `json:"lines"`
}

// Work lists the work of agents.
var Work = Operation[WorkRequest, Worked]{
	Spec:    Spec{Name: "memory/work", About: "The work of agents in the latest turns, from their tool calls: commands with their outcomes, changed files and open points", People: true},
	Default: WorkRequest{Limit: 20},
	Run:     withMemory((*Service).Work),
	Audit:   func(in *WorkRequest, out *Worked) Entry { return in.audit("list work", out.Groups) },
}

// Work lists the work of agents in the groups of a recall.
func (sv *Service) Work(ctx context.Context, in *WorkRequest) (w Worked, err error) {
	w = Worked{Turns: []WorkedTurn{}}
	if err := cmp.Or(in.Check(), in.check()); err != nil {
		return w, err
	}
	targets, err := sv.targets(in.Selector)
	if err != nil {
		return w, err
	}
	var of []string // scopes
	if in.Session != "" {
		session, _ := graphiti.NamedSession(in.Session) // targets has read it
		of = append(of, graphiti.SessionScope(session, ""))
	}
	seen := make(map[string]bool) // a session's work may be in several groups
	for _, t := range sv.Recallable(targets) {
		w.Groups = append(w.Groups, t.Group)
		turns, err := sv.worked(ctx, append(of, t.Group)...)
		if err != nil {
			return w, err
		}
		for _, turn := range turns {
			if !seen[turn.ID] {
				w.Turns, seen[turn.ID] = append(w.Turns, turn), true
			}
		}
	}
	slices.SortStableFunc(w.Turns, func(a, b WorkedTurn) int { return cmp.Compare(b.Time, a.Time) })
	w.AllTurns = len(w.Turns)
	w.Turns = w.Turns[:min(in.Limit, len(w.Turns))]
	return w, nil
}

// worked returns the work of the sessions with all of some scopes.
func (sv *Service) worked(ctx context.Context, scopes ...string) (turns []WorkedTurn, err error) {
	err = sv.o.State.Snapshots.Each(ctx, func(_ string, body []byte) error {
		session, list := inject.WorkIn(body)
		for i := range list {
			t := &list[i]
			if lines := t.Lines(); lines != nil {
				turns = append(turns, WorkedTurn{t.ID, session, dateOf(time.Unix(t.At, 0)), lines})
			}
		}
		return nil
	}, scopes...)
	return turns, err
}

// addWork adds the work of a conversation's turns. An empty owner selects all.
func (sv *Service) addWork(ctx context.Context, x *Explained, owner string) error {
	scope := graphiti.SessionScopeOf(x.Hash, "")
	if owner != "" {
		scope = graphiti.SessionScopeOf(x.Hash, owner)
	}
	turns, err := sv.worked(ctx, scope)
	for i := range x.Turns {
		for k := range turns {
			if turns[k].ID == x.Turns[i].ID {
				x.Turns[i].Work = turns[k].Lines
			}
		}
	}
	return err
}
