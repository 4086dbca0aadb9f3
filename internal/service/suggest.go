package service

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

// SuggestRequest is a text of a model, for the project or the person of the selector.
type SuggestRequest struct {
	Selector
	Text   string `json:"text"`
	Client string `json:"client,omitempty"` // the model's client
}

// Suggested is a stored suggestion.
type Suggested struct {
	ID     string         `json:"id,omitempty"` // of the message in the project
	Line   string         `json:"line"`         // ID of the line to confirm
	State  card.LineState `json:"state"`        // of the line
	Groups []string       `json:"groups"`
}

// Suggest stores a text of a model. In a project it is a message of the model, which is found
// there like the model's answers. Everywhere it is a line that has no effect until the person
// confirms it.
var Suggest = Operation[SuggestRequest, Suggested]{
	Spec: Spec{Name: "memory/suggest", About: "Store a text of a model, which waits for the person's confirmation", People: true},
	Run:  withMemory((*Service).Suggest),
	Audit: func(in *SuggestRequest, out *Suggested) Entry {
		return in.audit("suggest", out.Groups)
	},
}

// Suggest carries out the operation.
func (sv *Service) Suggest(ctx context.Context, in *SuggestRequest) (done Suggested, err error) {
	text := strings.TrimSpace(in.Text)
	if err := sv.checkText(text); err != nil {
		return done, err
	}
	if in.Session+in.Group+in.Agent != "" {
		return done, invalid("a suggestion is for a project or a person: remove session, group and agent")
	}
	scope := graphiti.ScopeUser
	if in.Workspace != "" {
		scope = graphiti.ScopeWorkspace
	}
	target, who, err := sv.target(in.Selector, string(scope))
	if err != nil {
		return done, err
	}
	who.Program, who.Application = in.Client, in.Client
	now, generation := time.Now(), sv.o.State.Generations.Now()
	turn := ledger.Turn{
		ID: ledger.DerivedID("suggest", target.Group, text), Owner: who.Owner(), Workspace: who.Workspace, Assistant: text, Said: now, Answered: now,
		Client: in.Client, Targets: []graphiti.Target{target}, Generation: generation, Standalone: true,
	}
	line := card.Line{
		Group: target.Group, Kind: card.KindFact, Text: text, State: card.Pending, At: now.Unix(), Personal: scope == graphiti.ScopeUser,
		Place: who.Place(), Where: in.Client, Workspace: who.Workspace, Turn: turn.ID, Program: in.Client, Owner: who.Owner(),
	}
	done.Groups = []string{target.Group}
	if scope == graphiti.ScopeWorkspace {
		line.Where = graphiti.ShortWorkspace(who.Workspace)
		done.ID = graphiti.MessageID(graphiti.EpisodeName(turn.ID, graphiti.RoleAssistant))
		if err := sv.o.Pipeline.Add(ctx, turn); err != nil {
			return done, err
		}
	}
	line, _, err = sv.cards().Offer(ctx, line, generation)
	if err != nil {
		return done, fmt.Errorf("store a text to confirm: %w", err)
	}
	done.Line, done.State = line.ID, line.State
	return done, nil
}
