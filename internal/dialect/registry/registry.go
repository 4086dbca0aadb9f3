// Package registry lists the supported APIs, and finds the one of a request.
package registry

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/gemini"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

// All are the supported APIs.
var All = []dialect.Dialect{
	chat.Dialect{},
	responses.Dialect{},
	messages.Dialect{},
	gemini.Dialect{},
}

var infos = func() (infos []dialect.Info) {
	for _, d := range All {
		infos = append(infos, d.Info())
	}
	return infos
}()

// Route is the treatment and the destination of a request.
type Route struct {
	dialect.Match
	Dialect  dialect.Dialect // nil if the request is forwarded unchanged
	Info     dialect.Info    // of Dialect
	Fetched  dialect.Dialect // of the answer that the request fetches; nil if it fetches none
	Upstream string          // one of Upstreams

	// Unserved is true if a model answers the request, in an API that is not supported.
	Unserved bool

	// Speaks is the dialect of the errors that the client understands, even if the request
	// is forwarded unchanged. OpenAI's are the best guess if no dialect claims it.
	Speaks dialect.Dialect
}

// Find returns the route of a request. A slash at the end of the path makes no difference.
func Find(r dialect.Request) Route {
	r.Path = bytes.TrimRight(r.Path, "/")
	found := Route{Upstream: DefaultUpstream, Speaks: chat.Dialect{}}
	for i, d := range All {
		m := d.Match(r)
		if m.Upstream {
			found.Upstream, found.Speaks = infos[i].Upstream, d
		}
		switch m.Use {
		case dialect.UseTurn, dialect.UseReplay:
			found.Match, found.Dialect, found.Info = m, d, infos[i]
		case dialect.UseFetch:
			found.Match, found.Fetched = m, d
		case dialect.UseNone:
		}
	}
	found.Speaks = cmp.Or(found.Dialect, found.Fetched, found.Speaks)
	found.Unserved = found.Dialect == nil && asksModel(r)
	return found
}

// Meant returns the dialect of a body that the dialect of its path does not understand; nil if
// there is none. Some gateways take requests of the Responses API at the path of Chat
// Completions, and answer in either form.
func Meant(d dialect.Dialect) dialect.Dialect {
	if d != (chat.Dialect{}) {
		return nil
	}
	return misplaced{}
}

type misplaced struct{ responses.Dialect }

func (misplaced) NewReader(string) dialect.Reader {
	return readers{chat.Dialect{}.NewReader(""), responses.Dialect{}.NewReader("")}
}

// readers read an answer in the form of either; each ignores the other's.
type readers [2]dialect.Reader

func (r readers) Event(name, data []byte) {
	r[0].Event(name, data)
	r[1].Event(name, data)
}

func (r readers) Body(body []byte) {
	r[0].Body(body)
	r[1].Body(body)
}

func (r readers) Answer() dialect.Answer {
	if a := r[0].Answer(); a.End != dialect.EndUnknown {
		return a
	}
	return r[1].Answer()
}

// modelCalls are the last words of the paths at which a model answers: those of Amazon
// Bedrock, Ollama, Cohere, Google, Mistral, text-generation servers, and the older APIs of
// OpenAI.
var modelCalls = []string{
	"invoke", "invoke-with-response-stream", "converse", "converse-stream",
	"chat", "generate", "generate_stream", "completion", "completions", "runs", "interactions",
	"generateContent", "streamGenerateContent", "rawPredict", "streamRawPredict",
}

// asksModel reports whether a model answers requests to this path.
func asksModel(r dialect.Request) bool {
	if string(r.Method) != "POST" {
		return false
	}
	word := r.Path[bytes.LastIndexAny(r.Path, "/:")+1:]
	return slices.ContainsFunc(modelCalls, func(call string) bool { return string(word) == call })
}

// DefaultUpstream serves the requests that no dialect claims.
const DefaultUpstream = "openai"

// Upstreams are the names of all upstreams, the default one first.
var Upstreams = distinct(func(i *dialect.Info) []string { return []string{i.Upstream} }, DefaultUpstream)

// Credentials are the possible places of a request's credential, over all APIs.
var Credentials = distinct(func(i *dialect.Info) []dialect.Credential { return i.Credentials })

// distinct returns first, and then the values of all infos, without duplicates.
func distinct[T comparable](of func(*dialect.Info) []T, first ...T) []T {
	for i := range infos {
		for _, v := range of(&infos[i]) {
			if !slices.Contains(first, v) {
				first = append(first, v)
			}
		}
	}
	return first
}
