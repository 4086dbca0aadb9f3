// Package gemini is Google's Gemini API: generateContent and
// streamGenerateContent, whose answers come whole, as events or as an array.
// Its other methods, such as countTokens, are forwarded as they are.
//
// It owns what that API's requests, answers and errors look like, and must not
// know of another API, of memory or of connections. Of our packages it imports
// dialect only.
package gemini

import (
	"bytes"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Dialect is the API.
type Dialect struct{}

// credentials are the places for them.
var credentials = []dialect.Credential{{Header: "X-Goog-Api-Key"}, {Query: "key"}, {Header: "Authorization"}}

// Info implements dialect.Dialect.
func (Dialect) Info() dialect.Info {
	return dialect.Info{
		Name: "gemini", Provider: "gcp.gemini", Upstream: "gemini",
		Credentials: credentials,
	}
}

// methods are those that go on with a conversation.
var methods = map[string]string{
	"generateContent":       "/models/{model}:generateContent",
	"streamGenerateContent": "/models/{model}:streamGenerateContent",
}

// ours begin the paths of Google's API that no other provider has. The last is
// the Live API's, a WebSocket.
var ours = []string{"/v1beta/", "/v1alpha/", "/upload/v1beta/", "/ws/google.ai.generativelanguage."}

// Match implements dialect.Dialect. In /v1 other providers have paths of the
// same names, but no POST to a model of theirs.
func (Dialect) Match(r dialect.Request) (m dialect.Match) {
	m.Upstream = len(r.Header.Peek("X-Goog-Api-Key")) > 0
	for _, prefix := range ours {
		m.Upstream = m.Upstream || bytes.HasPrefix(r.Path, []byte(prefix))
	}
	model, method, ok := called(r.Path)
	if !ok || string(r.Method) != http.MethodPost {
		return m
	}
	m.Upstream = true
	if route, ok := methods[string(method)]; ok {
		m.Use, m.Route, m.Model = dialect.UseTurn, route, model
	}
	return m
}

// called splits a path such as /v1beta/models/gemini-3-pro:generateContent.
func called(path []byte) (model, method []byte, ok bool) {
	for _, version := range []string{"/v1beta/", "/v1/", "/v1alpha/"} {
		rest, ok := bytes.CutPrefix(path, []byte(version))
		if !ok {
			continue
		}
		collection, name, _ := bytes.Cut(rest, []byte{'/'})
		model, method, ok := bytes.Cut(name, []byte{':'})
		known := string(collection) == "models" || string(collection) == "tunedModels"
		return model, method, ok && known && len(model) > 0 && bytes.IndexByte(name, '/') < 0
	}
	return nil, nil, false
}
