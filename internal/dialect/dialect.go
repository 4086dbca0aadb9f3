package dialect

import "slices"

// Dialect is one API: what its requests and answers look like. An
// implementation has no state, is safe for concurrent use, and must not keep
// the bytes that it is given.
type Dialect interface {
	// Info is what does not depend on a request.
	Info() Info

	// Match says what a request is to this API, by its head alone.
	Match(r Request) Match

	// Parse reads body into c and reports whether it was understood. A body
	// that was not understood (not valid JSON, not of this API's shape,
	// ambiguous) is forwarded untouched. c refers to body, and both live only
	// as long as the caller's buffer. Parse does not modify body, and its time
	// is linear in the body's size. It stays within the limits of c, and
	// c.Stopped says so where they end it.
	Parse(body []byte, c *Conversation) bool

	// Calls names the tools that are called in body behind an offset, in their
	// order. Body is one that Parse has understood.
	Calls(body []byte, behind int, called func(name string))

	// NewReader returns a reader for one answer.
	NewReader() Reader

	// Error is the body of an answer with which the proxy itself refuses or
	// fails a request, in the shape that this API's clients understand.
	Error(f Failure) []byte
}

// Info describes an API.
type Info struct {
	Name     string // of its folder
	Provider string // as OpenTelemetry's gen_ai.provider.name has it
	Upstream string // which upstream serves what Match claims for it; metrics use the name

	// Credentials are the places where a request shows who pays for it.
	Credentials []Credential

	// Relax is what makes the provider take a conversation whose beginning has
	// changed, by an insert and a header; nil where nothing does, or nothing
	// has to.
	Relax *Relax
}

// Credential is a place in a request where a secret stands: a header, which
// may have Bearer before it, or a parameter of the query.
type Credential struct {
	Header string // in fasthttp's spelling
	Query  string
}

// Relax is used for a conversation that has lost a block.
type Relax struct {
	// Insert returns what is added to a body, and reports whether there was
	// anything to add.
	Insert func(body []byte) (Insert, bool)

	// Header and Value are added to the request with it. A header that is
	// there is a list, and the value is added to it.
	Header, Value string
}

// Among adds to the inserts of a body the one that makes the provider take it. It
// returns nil where there is no way to.
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

// Header finds a field of a head by its canonical name; nil: there is none.
type Header interface{ Peek(name string) []byte }

// Use says what is to be done with a request.
type Use uint8

// The uses of requests.
const (
	UseNone   Use = iota // not one of a conversation: it is forwarded as it is
	UseTurn              // a conversation that the model goes on with
	UseReplay            // a conversation as it stands (counted, compacted): its blocks are repeated and nothing else happens
	UseFetch             // the answer to an earlier request is fetched
)

// Match is what a request is to a dialect.
type Match struct {
	Use   Use
	Route string // of UseTurn and UseReplay: the path without what differs, for traces
	Model []byte // where the path names it
	ID    string // of UseFetch: the answer's

	// Upstream says that the request belongs to the upstream of Info, also one
	// of UseNone. What nobody claims goes to the default one.
	Upstream bool
}
