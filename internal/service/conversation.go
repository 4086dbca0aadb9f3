package service

import "context"

// ConversationRequest names a conversation of a selector's: by the hash that memory/list
// has, or by one of its messages (Selector.Message). Without Skip the turn of that message
// is among those that are shown. A message that was said in no conversation, such as a
// promoted text, is shown alone.
type ConversationRequest struct {
	Selector
	Hash  string `json:"hash,omitempty"`
	Skip  int    `json:"skip,omitempty"`  // the newest turns
	Limit int    `json:"limit,omitempty"` // most turns

	own bool // of a caller who is no operator: what others wrote to is left out
}

// Explained is a conversation, with what memory did for each of its turns.
type Explained struct {
	Conversation
	Memories []Kept   `json:"memories"` // that its messages are in
	Turns    []Turn   `json:"turns"`    // oldest first
	AllTurns int      `json:"all_turns"`
	Note     string   `json:"note,omitempty"`
	Groups   []string `json:"-"`
}

// Turn is one turn of a conversation.
type Turn struct {
	ID       string    `json:"id"`
	Time     string    `json:"time,omitempty"`
	Messages []Record  `json:"messages"`           // what was said, in order
	Decision *Decision `json:"decision,omitempty"` // nil: none is kept any more
}

// Decision is what was decided for a turn.
type Decision struct {
	Block  string  `json:"block,omitempty"` // as it stood before the person's message
	Facts  int     `json:"facts"`
	Gone   bool    `json:"gone,omitempty"`   // the block was emptied, because what it showed was forgotten
	Reason string  `json:"reason,omitempty"` // why there is none: a word of the X-Graphiti-Memory header
	Why    string  `json:"why,omitempty"`    // the same in a sentence
	Pieces []Piece `json:"pieces,omitempty"` // what was shown, in the block's order, then the best of what was not
}

// Piece is one thing that a search found for a turn, or that the card has.
type Piece struct {
	Verdict  string   `json:"verdict"`        // shown, or why not: an inject.Verdict
	Line     string   `json:"line,omitempty"` // of the block, which several may share; empty: it was not shown
	Kind     string   `json:"kind"`           // message, fact, card, or note: what is noted of sessions, which has no id
	Scope    string   `json:"scope,omitempty"`
	Group    string   `json:"group,omitempty"`
	Strength *float64 `json:"strength,omitempty"` // nil: the memory does not measure it

	// What it is now: the message, or Graphiti's fact. No text: it is not there any more.
	ID           string `json:"id,omitempty"` // of the message, by which it is forgotten and corrected
	UUID         string `json:"uuid,omitempty"`
	Text         string `json:"text,omitempty"`
	Role         string `json:"role,omitempty"`
	Time         string `json:"time,omitempty"`
	Conversation string `json:"conversation,omitempty"` // in which it was said: its hash
	Turn         string `json:"turn,omitempty"`         // in which it was said
}

// TurnsOf shows a conversation with what memory did for each of its turns.
var TurnsOf = Operation[ConversationRequest, Explained]{
	Spec:    Spec{Name: "memory/conversation", About: "One conversation: its turns, their blocks, and the rejected results with reasons"},
	Default: ConversationRequest{Limit: 50},
	Run: func(ctx context.Context, h *Host, in *ConversationRequest) (Explained, error) {
		return h.Memory.Explain(ctx, in)
	},
	Audit: func(in *ConversationRequest, out *Explained) Entry {
		return in.audit("show a conversation", out.Groups)
	},
	Own: func(ctx context.Context, h *Host, in *ConversationRequest, own Selector) error {
		in.own = true
		return ownSelector(ctx, h, &in.Selector, own)
	},
}
