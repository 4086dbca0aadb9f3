// Package chat is OpenAI's Chat Completions API, which most other providers and
// gateways speak too: POST …/chat/completions.
package chat

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
		Name: "chat", Provider: "openai", Upstream: "openai",
		Credentials: credentials,
	}
}

const route = "/chat/completions"

// Match implements dialect.Dialect. Providers have different prefixes: /v1,
// /openai/deployments/{name}, /api/v1.
func (Dialect) Match(r dialect.Request) dialect.Match {
	if string(r.Method) == "POST" && bytes.HasSuffix(r.Path, []byte(route)) {
		return dialect.Match{Use: dialect.UseTurn, Route: route}
	}
	return dialect.Match{}
}

func (Dialect) Error(f dialect.Failure) []byte { return dialect.OpenAIError(f) }
