package proxy

import (
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// TestAPIsBehindRepeatedSlashes: a base address with a slash at its end, or a client
// that adds one, sends no key to another provider.
func TestAPIsBehindRepeatedSlashes(t *testing.T) {
	const live = "ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=k"
	for target, want := range map[string]string{
		"/" + live: "gemini", "//" + live: "gemini", "///" + live: "gemini",
		"//v1beta/models/gemini-3:generateContent": "gemini", "//v1/messages": "anthropic", "//v1/chat/completions": "openai",
		"/x//" + live: "openai", "/./v1beta/models?key=k": "gemini", "/v1%62eta/models?key=k": "gemini", "/upload//v1beta/files?key=k": "gemini",
	} {
		var h fasthttp.RequestHeader
		h.SetMethod("POST")
		h.SetRequestURI(target)
		r := routeOf(&h, wire.PlainPath(h.RequestURI()))
		if r.Upstream != want {
			t.Errorf("%s goes to %s", target, r.Upstream)
		}
		if understood := r.Dialect != nil; understood != (want != "gemini" && target[:2] == "//" || target == "//v1beta/models/gemini-3:generateContent") {
			t.Errorf("%s is understood: %v", target, understood)
		}
	}
}
