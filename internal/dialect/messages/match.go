// Package messages is Anthropic's Messages API: POST …/v1/messages and
// …/v1/messages/count_tokens, and on Vertex AI
// …/publishers/anthropic/models/{model}:rawPredict and …:streamRawPredict.
package messages

import (
	"bytes"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Dialect is the API.
type Dialect struct{}

// credentials are the places for credentials.
var credentials = []dialect.Credential{{Header: "X-Api-Key"}, {Header: "Authorization"}}

func (Dialect) Info() dialect.Info {
	return dialect.Info{
		Name: "messages", Provider: "anthropic", Upstream: "anthropic",
		Credentials: credentials,
		Relax:       &dialect.Relax{Insert: dropThinking, Header: "Anthropic-Beta", Value: "thinking-binding-controls-2026-08-01"},
	}
}

const (
	turns = "/messages"
	count = "/messages/count_tokens"
)

func (Dialect) Match(r dialect.Request) dialect.Match {
	model, method, vertex := onVertex(r.Path)
	m := dialect.Match{Upstream: vertex || isAnthropic(r)}
	if string(r.Method) != "POST" {
		return m
	}
	switch {
	case string(model) == vertexCount:
		m.Use, m.Route = dialect.UseReplay, count
	case vertex:
		m.Use, m.Route, m.Model = dialect.UseTurn, "/models/{model}:"+method, model
	case bytes.HasSuffix(r.Path, []byte(turns)):
		m.Use, m.Route = dialect.UseTurn, turns
	case bytes.HasSuffix(r.Path, []byte(count)):
		m.Use, m.Route = dialect.UseReplay, count
	}
	return m
}

// vertexCount takes the place of a model in Vertex AI's path for counting tokens.
const vertexCount = "count-tokens"

// onVertex splits the path of a Claude model on Vertex AI. The requests have the body of
// the Messages API without a model.
func onVertex(path []byte) (model []byte, method string, ok bool) {
	_, name, found := bytes.Cut(path, []byte("/publishers/anthropic/models/"))
	model, called, _ := bytes.Cut(name, []byte{':'})
	if !found || len(model) == 0 {
		return nil, "", false
	}
	for _, method := range []string{"rawPredict", "streamRawPredict"} {
		if string(called) == method {
			return model, method, true
		}
	}
	return nil, "", false
}

// isAnthropic reports whether a request goes to Anthropic. The path does not suffice:
// OpenAI too has paths such as /v1/models and /v1/files.
func isAnthropic(r dialect.Request) bool {
	return bytes.HasPrefix(r.Path, []byte("/v1/messages")) ||
		len(r.Header.Peek("Anthropic-Version")) > 0 ||
		bytes.HasPrefix(r.Header.Peek("User-Agent"), []byte("claude-cli/"))
}
