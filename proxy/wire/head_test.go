package wire

import (
	"strings"
	"testing"
)

// answerHead is a typical answer head of a provider.
const answerHead = "HTTP/1.1 200 OK\r\nDate: Mon, 23 Nov 2026 09:00:00 GMT\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n" +
	"access-control-expose-headers: X-Request-ID\r\nopenai-organization: org-aaaaaaaaaaaaaaaa\r\nopenai-processing-ms: 312\r\nopenai-version: 2020-10-01\r\nx-ratelimit-limit-requests: 10000\r\n" +
	"x-ratelimit-limit-tokens: 2000000\r\nx-ratelimit-remaining-requests: 9999\r\nx-ratelimit-remaining-tokens: 1999984\r\nx-ratelimit-reset-requests: 6ms\r\nx-ratelimit-reset-tokens: 0s\r\n" +
	"x-request-id: req_0123456789abcdef0123456789abcdef\r\nstrict-transport-security: max-age=31536000; includeSubDomains; preload\r\ncf-cache-status: DYNAMIC\r\n\r\n"

// TestMalformedAnswerHeads checks that malformed heads are refused, because the next reader
// may interpret them differently (RFC 9112 section 2.2, RFC 9110 section 5.5).
func TestMalformedAnswerHeads(t *testing.T) {
	const rest = "Content-Length: 0\r\n\r\n"
	for name, tc := range map[string]struct {
		head string
		ok   bool
	}{
		"as most are":                   {answerHead, true},
		"lines end with LF":             {"HTTP/1.1 200 OK\nX-A: a\nContent-Length: 0\n\n", true},
		"no reason":                     {"HTTP/1.1 200\r\n" + rest, true},
		"CR in a value":                 {"HTTP/1.1 200 OK\r\nX-A: a\rSet-Cookie: b\r\n" + rest, false},
		"CR at a value's end":           {"HTTP/1.1 200 OK\r\nX-A: a\r\r\n" + rest, false},
		"CR in a name":                  {"HTTP/1.1 200 OK\r\nX-A\r: a\r\n" + rest, false},
		"CR in the reason":              {"HTTP/1.1 200 O\rK\r\n" + rest, false},
		"CR in a line that ends in LF":  {"HTTP/1.1 200 OK\nX-A: a\rb\n" + rest, false},
		"NUL in a value":                {"HTTP/1.1 200 OK\r\nX-A: a\x00b\r\n" + rest, false},
		"a folded line":                 {"HTTP/1.1 200 OK\r\nX-A: a\r\n b: c\r\n" + rest, false},
		"no colon":                      {"HTTP/1.1 200 OK\r\nX-A\r\n" + rest, false},
		"a space before the colon":      {"HTTP/1.1 200 OK\r\nX-A : a\r\n" + rest, false},
		"another version of everything": {"HTTP/2 200\r\n" + rest, false},
	} {
		var h AnswerHead
		if err := parseHead([]byte(tc.head), headEnd([]byte(tc.head)), &h); (err == nil) != tc.ok {
			t.Errorf("%s: got error %v, want success %v", name, err, tc.ok)
		}
	}
	if !strings.HasSuffix(answerHead, "\r\n\r\n") {
		t.Error("the head has no end")
	}
}
