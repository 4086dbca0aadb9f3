package service

import "context"

// ConversationRequest selects a conversation by its hash, or by one of its messages
// (Selector.Message). Without Skip, the answer includes the turn of that message. A message
// outside conversations, such as a promoted text, is returned alone.
type ConversationRequest struct {
	Selector
	Hash  string `json:"hash,omitempty"`
	Skip  int    `json:"skip,omitempty"`  // number of the newest turns to omit
	Limit int    `json:"limit,omitempty"` // maximum number of turns
}

// Explained is a conversation with the decision of each turn.
type Explained struct {
	Conversation
	Memories []Kept   `json:"memories"` // memories of its messages
	Turns    []Turn   `json:"turns"`    // oldest first
	AllTurns int      `json:"all_turns"`
	Also     int      `json:"also,omitempty"` // other conversations with a copy of the selected message
	Note     string   `json:"note,omitempty"`
	Groups   []string `json:"-"`
}

// Turn is one turn of a conversation.
type Turn struct {
	ID       string    `json:"id"`
	Time     string    `json:"time,omitempty"`
	Messages []Record  `json:"messages"`           // in the order of time
	Decision *Decision `json:"decision,omitempty"` // nil if expired
	Work     []string  `json:"work,omitempty"`     // lines about the agent's tool calls
}

// Decision is the decision about the memory of a turn.
type Decision struct {
	Block  string  `json:"block,omitempty"` // the block before the person's message
	Facts  int     `json:"facts"`
	Gone   bool    `json:"gone,omitempty"`   // a forget emptied the block
	Reason string  `json:"reason,omitempty"` // reason for no block, as in the X-Graphiti-Memory header
	Why    string  `json:"why,omitempty"`    // the reason in a sentence
	Pieces []Piece `json:"pieces,omitempty"` // shown pieces in the order of the block, then the best of the others
}

// Piece is a search result for a turn, or an entry of the card.
type Piece struct {
	Verdict  string   `json:"verdict"`        // an inject.Verdict
	Line     string   `json:"line,omitempty"` // line of the block, which pieces may share, or "" if it was not shown
	Kind     string   `json:"kind"`           // message, fact, card, or note for session notes, which have no ID
	Scope    string   `json:"scope,omitempty"`
	Group    string   `json:"group,omitempty"`
	Strength *float64 `json:"strength,omitempty"` // nil if the memory does not measure it

	// The current message, or Graphiti's fact. An empty text means that it is gone.
	ID           string `json:"id,omitempty"` // message ID, for forget and correct
	UUID         string `json:"uuid,omitempty"`
	Text         string `json:"text,omitempty"`
	Role         string `json:"role,omitempty"`
	Time         string `json:"time,omitempty"`
	Conversation string `json:"conversation,omitempty"` // hash of its conversation
	Turn         string `json:"turn,omitempty"`         // its turn
}

// TurnsOf returns a conversation with the decision of each turn.
var TurnsOf = Operation[ConversationRequest, Explained]{
	Spec:    Spec{Name: "memory/conversation", About: "One conversation: its turns, their blocks, and the rejected results with reasons"},
	Default: ConversationRequest{Limit: 50},
	Run:     withMemory((*Service).Explain),
	Audit: func(in *ConversationRequest, out *Explained) Entry {
		return in.audit("show a conversation", out.Groups)
	},
	Own: func(ctx context.Context, h *Host, in *ConversationRequest, own Selector) error {
		in.unshared = true
		return h.Memory.narrow(ctx, &in.Selector, own)
	},
}
