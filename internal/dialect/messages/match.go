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

// Error implements dialect.Dialect. OpenAI's format with a type next to the error is
// Anthropic's format plus members that its clients do not read. The documentation promises
// it for all paths.
func (Dialect) Error(f dialect.Failure) []byte { return dialect.OpenAIError(f) }

// dropBound makes the API drop thoughts that are bound to an earlier beginning of the
// conversation; otherwise it refuses the request.
const dropBound = `{"prefix_mismatch_behavior":"drop_block"}`

// dropThinking sets thinking.block_binding, so that the API drops thoughts bound to a block
// that the conversation has lost (platform.claude.com, "Preserved thinking"). It returns
// false if there is nothing to add: a client that sets the field itself has decided.
func dropThinking(body []byte) (dialect.Insert, bool) {
	thinking := dialect.Document(body).Get("thinking")
	if !thinking.IsObject() || thinking.Get("block_binding").Exists() {
		return dialect.Insert{}, false
	}
	text := `"block_binding":` + dropBound
	if len(thinking.Map()) > 0 {
		text += ","
	}
	return dialect.Insert{At: thinking.Index + 1, Text: []byte(text)}, true
}
