package wire

import (
	"bytes"
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

// TestLinesOfChunksEndWithBoth checks that each line of a chunked body must end with CRLF.
// A parser that accepts CR or LF alone finds different chunks than the next program. NUL is
// valid only in the payload.
func TestLinesOfChunksEndWithBoth(t *testing.T) {
	for body, good := range map[string]bool{
		"1\r\nx\r\n0\r\n\r\n":               true,
		"1;a=b\r\nx\r\n0\r\nT: 1\r\n\r\n":   true,
		"1\nx\r\n0\r\n\r\n":                 false,
		"1\r\nx\n0\r\n\r\n":                 false,
		"1\r\nx\r\n0\n\r\n":                 false,
		"1\r\nx\r\n0\r\n\n":                 false,
		"1\r\nx\r\n0\r\nT: 1\n\r\n":         false,
		"1;a\rb\r\nx\r\n0\r\n\r\n":          false,
		"1\r\nx\r\n0\r\nT: 1\rU: 2\r\n\r\n": false,
		"1\r\nx\r\n0\r\nT: 1\x00\r\n\r\n":   false,
		"1\r\nx\r\n0\r\n\x00T: 1\r\n\r\n":   false,
		"1;a\x00b\r\nx\r\n0\r\n\r\n":        false,
		"1\r\n\x00\r\n0\r\n\r\n":            true,
	} {
		for _, size := range []int{1, len(body)} {
			var tracker chunkTracker
			var err error
			for rest := []byte(body); len(rest) > 0 && err == nil; rest = rest[min(size, len(rest)):] {
				_, err = tracker.feed(rest[:min(size, len(rest))], nil)
			}
			if (err == nil && tracker.done()) != good {
				t.Errorf("%q, in pieces of %d: %v, done %v", body, size, err, tracker.done())
			}
		}
	}
}

func TestPlainPath(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/models":            "/v1/models",
		"/v1/models?a=/../%2F":  "/v1/models",
		"/v1/models#x":          "/v1/models",
		"http://h/v1/x":         "/v1/x",
		"http://h":              "/",
		"":                      "/",
		"/":                     "/",
		"*":                     "/*",
		"//a///b//":             "/a/b/",
		"/a/./b/.":              "/a/b/",
		"/a/../b/..":            "/",
		"/a/b/..":               "/a/",
		"/../../a":              "/a",
		"/.well-known/...":      "/.well-known/...",
		"/%61%2fb%2E%2e/c":      "/a/b../c",
		"/a/%2e%2E/b":           "/b",
		"/%2561":                "/a",
		"/%25%36%31":            "/a",
		"/%zz%6":                "/%zz%6",
		"\\a\\b":                "/a/b",
		"/models/a:generateX":   "/models/a:generateX",
		"/models/a%3AgenerateX": "/models/a:generateX",
	} {
		if got := string(PlainPath([]byte(target))); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}

// FuzzPlainPath checks that a plain path has no duplicate slash, dot segment, decodable
// escape or backslash left, and that PlainPath does not change it again.
func FuzzPlainPath(f *testing.F) {
	for _, s := range []string{"/u/x", "//%2575/./..\\x?y", "http://h/%", "%%2525", "/.a/..b/%2f"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, target []byte) {
		before := bytes.Clone(target)
		got := PlainPath(target)
		if !bytes.Equal(target, before) {
			t.Fatal("the target was changed")
		}
		if got[0] != '/' || bytes.Contains(got, []byte("//")) || bytes.Contains(got, []byte("/./")) || bytes.Contains(got, []byte("/../")) || bytes.Contains(got, []byte("%75")) || bytes.IndexByte(got, '\\') >= 0 {
			t.Fatalf("got %q, want a path that is not decoded or cleaned any further", got)
		}
		if again := PlainPath(got); !bytes.ContainsAny(got, "?#") && !bytes.Equal(again, got) {
			t.Fatalf("%q is %q", got, again)
		}
	})
}
