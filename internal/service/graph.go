package service

import (
	"context"
	"errors"
)

// GraphRequest is the input of Connections.
type GraphRequest struct {
	Selector
	Limit int `json:"limit,omitempty"` // most nodes
}

// Graph is what is connected with what.
type Graph struct {
	Nodes  []Node   `json:"nodes"` // the more connected first
	Edges  []Edge   `json:"edges"`
	Note   string   `json:"note,omitempty"` // what is not shown
	Groups []string `json:"-"`
}

// Node is an entity of Graphiti's; in the embedded memory, somebody or something that is
// mentioned.
type Node struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Count   int    `json:"count"` // messages that mention it, or facts about it
	Summary string `json:"summary,omitempty"`
}

// Edge connects two nodes: a fact of Graphiti's, or messages that mention both.
type Edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Says  string `json:"says"`            // the fact, or the newest message that mentions both, cut
	Count int    `json:"count,omitempty"` // messages that mention both
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	State State  `json:"state,omitempty"` // of a fact
	ID    string `json:"id,omitempty"`    // of the message
}

// Connections shows what is connected with what in a memory.
var Connections = Operation[GraphRequest, Graph]{
	Spec:    Spec{Name: "memory/graph", About: "What is connected with what: Graphiti's facts, or what messages mention together"},
	Default: GraphRequest{Limit: 60},
	Run: func(context.Context, *Host, *GraphRequest) (Graph, error) {
		return Graph{}, errors.New("not written yet")
	},
	Audit: func(in *GraphRequest, out *Graph) Entry { return in.audit("show connections", out.Groups) },
	Own: func(ctx context.Context, h *Host, in *GraphRequest, own Selector) error {
		return ownSelector(ctx, h, &in.Selector, own)
	},
}
