package dialect

import "slices"

// Dialect is one API: what its requests and answers look like. An
// implementation has no state, is safe for concurrent use, and must not keep
// the bytes that it is given.
type Dialect interface {
	// Info describes the API.
	Info() Info

	// Match classifies a request for this API, by its head alone.
	Match(r Request) Match

	// Parse reads body into c and reports whether it was understood. A body
	// that was not understood (not valid JSON, not of this API's shape,
	// ambiguous) is forwarded untouched. c refers to body, and both live only
	// as long as the caller's buffer. Parse does not modify body, and its time
	// is linear in the body's size. It stays within the limits of c, and
	// c.Stopped says so where they end it.
	Parse(body []byte, c *Conversation) bool

	// Calls names the tools that are called in body after an offset, in order. Parse
	// has understood this body.
	Calls(body []byte, behind int, called func(name string))

	// NewReader returns a reader for one answer. prefill is the beginning of the answer
	// that the request holds, or "".
	NewReader(prefill string) Reader

	// Error returns the body of the answer when the proxy itself refuses or fails a
	// request, in the shape that this API's clients understand.
	Error(f Failure) []byte
}

// Info describes an API.
type Info struct {
	Name     string // the name of its folder
	Provider string // the value of OpenTelemetry's gen_ai.provider.name
	Upstream string // the upstream for requests that Match claims; metrics use the name

	// Credentials are the places in a request where its credential may stand.
	Credentials []Credential

	// Relax makes the provider accept a conversation whose beginning has changed;
	// nil when nothing can, or nothing has to.
	Relax *Relax
}

// Credential is a place in a request where a secret may stand: a header, with or
// without "Bearer" before the secret, or a parameter of the query.
type Credential struct {
	Header string // in fasthttp's spelling
	Query  string
}

// Relax changes a request whose conversation has lost a block.
type Relax struct {
	// Insert returns what to add to a body; false when there is nothing to add.
	Insert func(body []byte) (Insert, bool)

	// Header and Value are added to the request with it. When the request has the
	// header, it is a list, and the value is appended to it.
	Header, Value string
}

// Among adds its insert to those of a body. It returns a nil Relax when there is
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

// Header finds a field of a head by its canonical name; nil: there is none.
type Header interface{ Peek(name string) []byte }

// Use says what the proxy does with a request.
type Use uint8

// The uses of requests.
const (
	UseNone   Use = iota // it belongs to no conversation: it is forwarded as it is
	UseTurn              // the model continues a conversation
	UseReplay            // the provider counts or compacts a conversation: its blocks are repeated, nothing else happens
	UseFetch             // it fetches the answer to an earlier request
)

// Match is how a dialect classifies a request.
type Match struct {
	Use   Use
	Route string // of UseTurn and UseReplay: the path without its variable parts, for traces
	Model []byte // when the path names it
	ID    string // of UseFetch: the answer's

	// Upstream says that the request goes to Info's upstream, even with UseNone.
	// Requests that no dialect claims go to the default upstream.
	Upstream bool
}
