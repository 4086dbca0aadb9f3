// Package responses is OpenAI's Responses API: POST …/responses, …/compact and
// …/input_tokens, and GET …/responses/{id} for an answer that was made in the
// background. Codex speaks it, also over a WebSocket.
package responses

import (
	"bytes"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Dialect is the API.
type Dialect struct{}

// credentials are the places for credentials. The second is Azure's.
var credentials = []dialect.Credential{{Header: "Authorization"}, {Header: "Api-Key"}}

func (Dialect) Info() dialect.Info {
	return dialect.Info{
		Name: "responses", Provider: "openai", Upstream: "openai",
		Credentials: credentials,
	}
}

// routes are the ends of the API's paths. Providers have different prefixes.
var routes = []struct {
	path string
	use  dialect.Use
}{
	{"/responses", dialect.UseTurn},
	{"/responses/compact", dialect.UseReplay},
	{"/responses/input_tokens", dialect.UseReplay},
}

const (
	maxPrefix = 64 // bytes before the path of an answer
	maxID     = 128
)

func (Dialect) Match(r dialect.Request) dialect.Match {
	switch string(r.Method) {
	case "POST":
		for _, route := range routes {
			if bytes.HasSuffix(r.Path, []byte(route.path)) {
				return dialect.Match{Use: route.use, Route: route.path}
			}
		}
	case "GET":
		before, id, ok := bytes.Cut(r.Path, []byte("/responses/"))
		if ok && len(before) <= maxPrefix && len(id) > 0 && len(id) <= maxID && bytes.IndexByte(id, '/') < 0 {
			return dialect.Match{Use: dialect.UseFetch, ID: string(id)}
		}
	}
	return dialect.Match{}
}

func (Dialect) Error(f dialect.Failure) []byte { return dialect.OpenAIError(f) }
