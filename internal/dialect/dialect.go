package dialect

import (
	"slices"

	"github.com/tidwall/gjson"
)

// Dialect is one API: the format of its requests and answers. An implementation has no
// state, is safe for concurrent use, and must not retain the bytes that it is given.
type Dialect interface {
	// Info describes the API.
	Info() Info

	// Match classifies a request for this API, by its head alone.
	Match(r Request) Match

	// Parse reads body into c and reports whether it understood it. A body that it does not
	// understand (invalid JSON, another shape, an ambiguity) is forwarded untouched. c
	// refers to body, and both live only as long as the caller's buffer. Parse does not
	// modify body, and its time is linear in the body's size. It respects the limits of c;
	// if one ends the reading, c.Stopped returns it.
	Parse(body []byte, c *Conversation) bool

	// Work adds the tool calls and results in one item of the list of messages to w. The
	// item may be shortened, and of any shape.
	Work(item gjson.Result, w *Work)

	// NewReader returns a reader for one answer. prefill is the beginning of the answer
	// that the request holds, or "".
	NewReader(prefill string) Reader

	// Error returns the body of the proxy's own error answer to a request, in the format
	// that this API's clients understand.
	Error(f Failure) []byte
}

// Info describes an API.
type Info struct {
	Name     string // the name of its folder
	Provider string // the value of OpenTelemetry's gen_ai.provider.name
	Upstream string // the upstream for requests that Match claims; metrics use the name

	// Credentials are the possible places of a request's credential.
	Credentials []Credential

	// Relax makes the provider accept a conversation with a changed beginning; nil if this
	// is impossible or unnecessary.
	Relax *Relax
}

// Credential is a possible place of a secret in a request: a header, with or without
// "Bearer" before the secret, or a query parameter.
type Credential struct {
	Header string // in fasthttp's spelling
	Query  string
}

// Relax changes a request after its conversation has lost a block.
type Relax struct {
	// Insert returns an addition to a body; false if there is nothing to add.
	Insert func(body []byte) (Insert, bool)

	// Header and Value are added to a request along with the insert. If the request has the
	// header, it is a list, and Value is appended to it.
	Header, Value string
}

// Among adds its insert to the inserts of a body. It returns a nil Relax if there is
// nothing to add.
func (r *Relax) Among(inserts []Insert, body []byte) ([]Insert, *Relax) {
	if r == nil {
		return inserts, nil
	}
	insert, ok := r.Insert(body)
	if !ok {
		return inserts, nil
	}
	at, _ := slices.BinarySearchFunc(inserts, insert.At+1, func(in Insert, at int) int { return in.At - at })
	return slices.Insert(slices.Clone(inserts), at, insert), r
}

// Request is the head of a request.
type Request struct {
	Method, Path []byte // the path without the query
	Header       Header
}

// Header finds a header field by its canonical name; nil if there is none.
type Header interface{ Peek(name string) []byte }

// Use is the proxy's treatment of a request.
type Use uint8

// The uses of requests.
const (
	UseNone   Use = iota // it belongs to no conversation and is forwarded unchanged
	UseTurn              // the model continues a conversation
	UseReplay            // the provider counts or compacts a conversation: only its earlier blocks are repeated
	UseFetch             // it fetches the answer to an earlier request
)

// Match is a dialect's classification of a request.
type Match struct {
	Use   Use
	Route string // of UseTurn and UseReplay: the path without its variable parts, for traces
	Model []byte // if the path names it
	ID    string // of UseFetch: the answer's

	// Upstream is true if the request goes to Info's upstream, even with UseNone. A request
	// that no dialect claims goes to the default upstream.
	Upstream bool
}
