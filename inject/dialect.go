package inject

import (
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Dialect reads one API's request bodies.
type Dialect interface {
	// Parse reads body into c and reports whether it was understood. A body
	// that was not understood (not valid JSON, not of this API's shape) is
	// forwarded untouched. c keeps offsets and slices into body; both live
	// only as long as the caller's buffer. Parse must not modify body, and
	// must be linear in its size.
	Parse(body []byte, c *Conversation) bool
}

// Role is who a message is from, over all dialects.
type Role uint8

// The roles that matter here; everything else (system, developer, tool
// results, reasoning) is RoleOther.
const (
	RoleOther Role = iota
	RoleUser
	RoleAssistant
)

// Conversation is what a request body says, as far as memory is concerned.
// It is reused from request to request: Parse resets it.
type Conversation struct {
	Messages []Message
	Model    string // the model asked for
	Stream   bool   // the client asked for a streamed answer

	// Last is the index of the newest message that a person wrote, or -1.
	Last int

	// Kind says whether this request is a turn of a person, or a chore.
	Kind Kind

	buf []byte // decoded texts; Messages' Text point into the body or in here
}

// Message is one message of the conversation.
type Message struct {
	Role Role

	// Person is true for a user message in which something is left that a
	// person wrote, after the text of harnesses was taken out.
	Person bool

	// Text is what was said, decoded, text parts joined by a newline, harness
	// text and our own block taken out, white space trimmed. It lives as long
	// as the request's body.
	Text []byte

	at   int  // offset in the body where a block is inserted; -1: nowhere
	form form // how a block is written there
}

// form is how a block is written into a message.
type form uint8

const (
	formNone   form = iota
	formString      // at the beginning of a JSON string
	formPart        // as a new first part of an array of parts
)

// Insert is one piece of text to be spliced in.
type Insert struct {
	At   int    // offset in the body as the client sent it
	Text []byte // JSON, ready to be copied
}

// Plan is what is to be done with one request.
type Plan struct {
	Inserts []Insert // ascending by At
	Outcome Outcome

	// Turn is the key of the turn that the request belongs to; empty when the
	// request is no turn. It is stable over retries, tool rounds, restarts
	// and replicas, and is the id of the turn when it is remembered.
	Turn string

	// Write lists the groups that the turn is to be kept in; empty when it is
	// not to be kept.
	Write []graphiti.Target
}
