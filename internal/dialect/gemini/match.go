// Package gemini is Google's Gemini API: generateContent and streamGenerateContent, with
// answers in one piece, as events or as an array. Requests for its other methods, such as
// countTokens, are forwarded unchanged.
package gemini

import (
	"bytes"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Dialect is the API.
type Dialect struct{}

// credentials are the places for credentials.
var credentials = []dialect.Credential{{Header: "X-Goog-Api-Key"}, {Query: "key"}, {Header: "Authorization"}}

func (Dialect) Info() dialect.Info {
	return dialect.Info{
		Name: "gemini", Provider: "gcp.gemini", Upstream: "gemini",
		Credentials: credentials,
	}
}

// methods are the methods that continue a conversation, and their routes.
var methods = map[string]string{
	"generateContent":       "/models/{model}:generateContent",
	"streamGenerateContent": "/models/{model}:streamGenerateContent",
}

// ours are prefixes of paths that only Google's API has. The last is the Live API's,
// a WebSocket.
var ours = []string{"/v1beta/", "/v1alpha/", "/upload/v1beta/", "/ws/google.ai.generativelanguage."}

// Match implements dialect.Dialect. Other providers have paths such as /v1/models
// too, but no POST to a model's method.
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
