package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

func TestRequestIsForwardedUnchanged(t *testing.T) {
	big := strings.Repeat("x", 48<<10)
	for _, tc := range []struct {
		name    string
		prefix  string
		request string
		want    string // with HOST for the upstream's host
	}{
		{
			name:    "order, case and duplicates of fields are kept",
			request: "GET /v1/models?a=1&b=%20x HTTP/1.1\r\nHost: proxy\r\nx-lower: 1\r\nX-UPPER: 2\r\nX-Dup: a\r\nX-Dup: b\r\nsession_id: s\r\nConnection: close\r\n\r\n",
			want:    "GET /v1/models?a=1&b=%20x HTTP/1.1\r\nHost: HOST\r\nx-lower: 1\r\nX-UPPER: 2\r\nX-Dup: a\r\nX-Dup: b\r\nsession_id: s\r\n\r\n",
		},
		{name: "no field is added to a bare request", request: "GET / HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{name: "fields of the connection stay behind", request: "GET / HTTP/1.1\r\nHost: proxy\r\nConnection: close, X-Private\r\nX-Private: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nProxy-Authorization: x\r\nX-Kept: 1\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\nX-Kept: 1\r\n\r\n"},
		{name: "fields of the connection stay behind, whichever of its lines names them", request: "GET / HTTP/1.1\r\nHost: proxy\r\nConnection: X-One\r\nconnection:\tX-Two , X-Three\r\nX-One: 1\r\nX-Two: 2\r\nConnection: close\r\nX-Three: 3\r\nX-Kept: 1\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\nX-Kept: 1\r\n\r\n"},
		{name: "the connection ends though another line comes behind the one that says so", request: "GET / HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\nConnection: X-Private\r\nX-Private: 1\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{
			name:    "our own fields stay behind, others of the name do not",
			request: "GET / HTTP/1.1\r\nHost: proxy\r\nX-Graphiti-User: u\r\nx-graphiti-session: s\r\nX-GRAPHITI-WORKSPACE: w\r\nX-Graphiti-Agent: a\r\nX-Graphiti-System-Actor: b\r\nX-Graphiti-Memory: off\r\nX-Graphiti-Else: e\r\nConnection: close\r\n\r\n",
			want:    "GET / HTTP/1.1\r\nHost: HOST\r\nX-Graphiti-Else: e\r\n\r\n",
		},
		{name: "body with length", request: "POST /v1/x HTTP/1.1\r\nHost: proxy\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", want: "POST /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello"},
		{name: "empty body of a POST", request: "POST /v1/x HTTP/1.1\r\nHost: proxy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", want: "POST /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n"},
		{name: "small chunked body goes on with a length", request: "PUT /v1/x HTTP/1.1\r\nHost: proxy\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", want: "PUT /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nabcde"},
		{name: "body of a DELETE, and a method of one's own", request: "PURGE /v1/x HTTP/1.1\r\nHost: proxy\r\nContent-Length: 1\r\nConnection: close\r\n\r\nz", want: "PURGE /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\n\r\nz"},
		{name: "prefix of the upstream's address, path not normalised", prefix: "/base/", request: "GET //a/../b%2Fc/./d?x=/../ HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n", want: "GET /base//a/../b%2Fc/./d?x=/../ HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{name: "absolute form", request: "GET http://elsewhere/v1/models HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n", want: "GET /v1/models HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{name: "absolute form without a path", prefix: "/base", request: "GET http://elsewhere HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n", want: "GET /base/ HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{name: "absolute form with a query alone", request: "GET http://elsewhere?x=1 HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n", want: "GET /?x=1 HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{name: "absolute form with a query alone, which holds a slash", prefix: "/base", request: "GET http://elsewhere?x=a/b HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n", want: "GET /base/?x=a/b HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{name: "large fields", request: "GET / HTTP/1.1\r\nHost: proxy\r\nX-Big: " + big + "\r\nConnection: close\r\n\r\n", want: "GET / HTTP/1.1\r\nHost: HOST\r\nX-Big: " + big + "\r\n\r\n"},
		{name: "compressed body is not touched", request: "POST /v1/chat/completions HTTP/1.1\r\nHost: proxy\r\nContent-Encoding: zstd\r\nContent-Length: 4\r\nConnection: close\r\n\r\n\x28\xb5\x2f\xfd", want: "POST /v1/chat/completions HTTP/1.1\r\nHost: HOST\r\nContent-Encoding: zstd\r\nContent-Length: 4\r\n\r\n\x28\xb5\x2f\xfd"},
		{name: "expectation is answered here", request: "POST /v1/x HTTP/1.1\r\nHost: proxy\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi", want: "POST /v1/x HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\n\r\nhi"},
		{name: "HTTP/1.0 client", request: "GET /v1/x HTTP/1.0\r\n\r\n", want: "GET /v1/x HTTP/1.1\r\nHost: HOST\r\n\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newStub(t, say(okAnswer))
			s, _ := start(t, w.url()+tc.prefix)
			answer, err := talk(t, s, tc.request)
			must(t, err)
			answer = strings.TrimPrefix(answer, "HTTP/1.1 100 Continue\r\n\r\n")
			if !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(answer, "\r\n\r\nok") {
				t.Errorf("answer %q", answer)
			}
			want := []string{strings.ReplaceAll(tc.want, "HOST", w.ln.Addr().String())}
			if diff := cmp.Diff(want, w.requests()); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswerIsForwardedUnchanged(t *testing.T) {
	for _, tc := range []struct {
		name    string
		request string // default: GET with Connection: close
		answer  string
		want    string
	}{
		{name: "status, reason, fields and body", answer: "HTTP/1.1 418 I'm a teapot\r\nx-lower: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nServer: up\r\nContent-Length: 3\r\n\r\nabc", want: "HTTP/1.1 418 I'm a teapot\r\nx-lower: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nServer: up\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"},
		{
			name:   "chunks, extensions and trailers as they are",
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3;x=1\r\nabc\r\n1\r\nd\r\n0\r\nX-Sum: 9\r\n\r\n",
			want:   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: close\r\n\r\n3;x=1\r\nabc\r\n1\r\nd\r\n0\r\nX-Sum: 9\r\n\r\n",
		},
		{name: "no reason", answer: "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", want: "HTTP/1.1 200 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{name: "HEAD has a length and no body", request: "HEAD / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n", answer: "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", want: "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nConnection: close\r\n\r\n"},
		{name: "204", answer: "HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n", want: "HTTP/1.1 204 No Content\r\nX: 1\r\nConnection: close\r\n\r\n"},
		{name: "304 with a length", answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n", want: "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\nConnection: close\r\n\r\n"},
		{name: "interim answers", answer: "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", want: "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"},
		{name: "HTTP/1.0 client gets no chunks and no interim answer", request: "GET / HTTP/1.0\r\n\r\n", answer: "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", want: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcd"},
		{name: "fields of the connection stay behind", answer: "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-Graphiti-Memory: forged\r\nContent-Length: 0\r\n\r\n", want: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{name: "fields of the connection stay behind, whichever of its lines names them", answer: "HTTP/1.1 200 OK\r\nConnection: X-One\r\nX-One: 1\r\nX-Two: 2\r\nConnection: X-Two\r\nX-Kept: 1\r\nContent-Length: 0\r\n\r\n", want: "HTTP/1.1 200 OK\r\nX-Kept: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{name: "compressed bytes", answer: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00", want: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\nConnection: close\r\n\r\n\x1f\x8b\x08\x00"},
		{name: "line feeds alone end lines too", answer: "HTTP/1.1 200 OK\nContent-Length: 1\n\nx", want: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newStub(t, say(tc.answer))
			s, _ := start(t, w.url())
			request := tc.request
			if request == "" {
				request = "GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n"
			}
			got, err := talk(t, s, request)
			must(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswerThatEndsWithItsConnection(t *testing.T) {
	w := newStub(t, func(_ *stub, c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end")
		return false
	})
	s, _ := start(t, w.url())
	got, err := talk(t, s, "GET / HTTP/1.1\r\nHost: p\r\n\r\n")
	must(t, err)
	want := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nuntil the end"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHeadThatReadersDisagreeAbout checks that the client gets no header that it could read
// as two fields and the proxy as one.
func TestHeadThatReadersDisagreeAbout(t *testing.T) {
	const length = "Content-Length: 2\r\n\r\nok"
	for name, answer := range map[string]string{
		"CR in a value":          "HTTP/1.1 200 OK\r\nX-A: a\rSet-Cookie: b\r\n" + length,
		"CR in an interim value": "HTTP/1.1 103 Early Hints\r\nLink: a\rX-B: b\r\n\r\nHTTP/1.1 200 OK\r\n" + length,
		"NUL in a value":         "HTTP/1.1 200 OK\r\nX-A: a\x00b\r\n" + length,
	} {
		w := newStub(t, say(answer))
		s, _ := start(t, w.url())
		got, err := talk(t, s, "GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n")
		if err != nil || !strings.HasPrefix(got, "HTTP/1.1 502 ") || strings.Contains(got, "X-A") || strings.Contains(got, "X-B") {
			t.Errorf("%s: got %q, %v, want no error, \"HTTP/1.1 502 \" at its beginning, no \"X-A\" in it, no \"X-B\" in it", name, got, err)
		}
		_, _ = talk(t, s, "GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n")
		if n := w.connections(); n != 2 {
			t.Errorf("%s: two requests took %d connections, want 2", name, n)
		}
	}
}

// TestCutAnswerReachesClientCutOff checks that a truncated stream does not look complete to
// the client.
func TestCutAnswerReachesClientCutOff(t *testing.T) {
	for _, tc := range []struct {
		name   string
		proto  string
		answer string
		reset  bool // the upstream resets the connection
	}{
		{name: "between chunks", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"},
		{name: "in a chunk", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"},
		{name: "before the last line end", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"},
		{name: "known length", answer: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"},
		{name: "reset of an answer without a length", answer: "HTTP/1.1 200 OK\r\n\r\nabc", reset: true},
		{name: "chunks for HTTP/1.0", proto: "HTTP/1.0", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"},
		{name: "malformed chunk", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcde\r\n0\r\n\r\n"},
		{name: "a chunk's size ends with LF", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n"},
		{name: "a chunk ends with LF", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n"},
		{name: "CR in a trailer", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\rC: d\r\n\r\n"},
		{name: "a chunk's size ends with LF, for HTTP/1.0", proto: "HTTP/1.0", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			arrived := make(chan struct{})
			w := newStub(t, func(_ *stub, c net.Conn, _ string) bool {
				_, _ = io.WriteString(c, tc.answer)
				if tc.reset {
					<-arrived // a reset would overtake the bytes
					_ = c.(*net.TCPConn).SetLinger(0)
				}
				return false
			})
			s, _ := start(t, w.url())
			if tc.proto == "" {
				tc.proto = "HTTP/1.1"
			}
			raw := dial(t, s)
			_, _ = io.WriteString(raw, "GET / "+tc.proto+"\r\nHost: p\r\n\r\n")
			resp, err := http.ReadResponse(newReader(raw), nil)
			close(arrived)
			must(t, err)
			body, err := io.ReadAll(resp.Body)
			if err == nil {
				t.Errorf("the cut answer looks whole: %q", body)
			}
		})
	}
}

// TestPostIsNeverSentTwice checks that a POST is not repeated if its connection fails, at
// any moment.
func TestPostIsNeverSentTwice(t *testing.T) {
	for _, tc := range []struct {
		name  string
		die   func(c net.Conn)
		first bool // send another request first, so that the connection is reused
	}{
		{name: "fresh connection dies after the request", die: func(c net.Conn) { c.Close() }},
		{name: "reused connection dies after the request", die: func(c net.Conn) { c.Close() }, first: true},
		{name: "half an answer head", die: func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 O"); c.Close() }, first: true},
		{name: "garbage", die: func(c net.Conn) { _, _ = io.WriteString(c, "garbage\r\n\r\n"); c.Close() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			served := 0
			w := newStub(t, func(_ *stub, c net.Conn, request string) bool {
				if served++; tc.first && served == 1 {
					return say(okAnswer)(nil, c, request)
				}
				tc.die(c)
				return false
			})
			_, base := start(t, w.url())
			cl := client(t)
			if tc.first {
				post(t, cl, base+"/v1/first", "{}", http.StatusOK)
			}
			before := len(w.requests())
			post(t, cl, base+"/v1/second", "{}", http.StatusBadGateway)
			if got := len(w.requests()) - before; got != 1 {
				t.Errorf("the POST was sent %d times", got)
			}
		})
	}
}

// TestConnectionClosedWhileIdleIsNotUsed checks that the proxy detects a connection that
// its peer has closed before sending on it, and uses a new connection.
func TestConnectionClosedWhileIdleIsNotUsed(t *testing.T) {
	w := newStub(t, func(_ *stub, c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, okAnswer)
		return false
	})
	_, base := start(t, w.url())
	cl := client(t)
	for n := range int64(3) {
		post(t, cl, base+"/v1/x", "{}", http.StatusOK)
		waitFor(t, "the upstream to close the connection", func() bool { return w.closed.Load() == n+1 })
	}
	if got := len(w.requests()); got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
}

// TestConnectionThatItsPeerEndsIsNotKept checks that "Connection: close" in any line of the
// answer ends the connection.
func TestConnectionThatItsPeerEndsIsNotKept(t *testing.T) {
	for _, lines := range []string{
		"Connection: close\r\n", "Connection: close\r\nConnection: keep-alive\r\n", "Connection: X-Hop\r\nConnection: close\r\n",
	} {
		w := newStub(t, say("HTTP/1.1 200 OK\r\n"+lines+"Content-Length: 2\r\n\r\nok"))
		s, _ := start(t, w.url())
		for range 2 {
			must(t, helptest.ErrorOf(talk(t, s, "GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n")))
		}
		if n := w.connections(); n != 2 {
			t.Errorf("%q: two requests took %d connections, want 2", lines, n)
		}
	}
}

func TestUpstreamFaults(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closed.Close()
	silent := newStub(t, func(_ *stub, c net.Conn, _ string) bool {
		_, _ = io.Copy(io.Discard, c)
		return false
	})
	for _, tc := range []struct {
		name     string
		upstream string
		status   int
		code     string
	}{
		{"refused", "http://" + closed.Addr().String(), http.StatusBadGateway, "upstream_unreachable"},
		{"silent", silent.url(), http.StatusGatewayTimeout, "upstream_timeout"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, base := start(t, tc.upstream, func(o *Options) { o.Routes.Limits.UpstreamResponse = 100 * time.Millisecond })
			body := post(t, client(t), base+"/v1/chat/completions", `{"messages":[]}`, tc.status)
			var e struct {
				Error struct{ Message, Type, Code string }
			}
			if err := json.Unmarshal(body, &e); err != nil || e.Error.Code != tc.code || e.Error.Type != "api_error" || e.Error.Message == "" {
				t.Errorf("body %s (%v)", body, err)
			}
		})
	}
}

func TestUpstreamTLSIsVerified(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	up.Config.ErrorLog = log.New(io.Discard, "", 0)
	var opened atomic.Int64
	up.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	up.StartTLS()
	defer up.Close()
	t.Run("unknown authority", func(t *testing.T) {
		_, base := start(t, up.URL)
		post(t, client(t), base+"/v1/x", "{}", http.StatusBadGateway)
	})
	t.Run("known authority", func(t *testing.T) {
		pool := x509.NewCertPool()
		pool.AddCert(up.Certificate())
		_, base := start(t, up.URL, func(o *Options) { o.TLS = &tls.Config{RootCAs: pool} })
		opened.Store(0)
		big := strings.Repeat("y", 300<<10)
		cl := client(t)
		for range 3 {
			if got := post(t, cl, base+"/v1/x", big, http.StatusOK); string(got) != big {
				t.Errorf("%d bytes came back of %d", len(got), len(big))
			}
		}
		if n := opened.Load(); n != 1 {
			t.Errorf("three requests took %d connections, want 1", n)
		}
	})
}

// TestConnectionStaysAfterLargeBody checks that the client's connection stays open if the
// upstream answers along with the last byte of the body.
func TestConnectionStaysAfterLargeBody(t *testing.T) {
	w := newStub(t, say(okAnswer))
	s, _ := start(t, w.url(), func(o *Options) { o.Routes.Limits.InspectBytes = 64 << 10 })
	c := dial(t, s)
	answers, body := newReader(c), strings.Repeat("x", 300<<10)
	for i := range 200 {
		must(t, helptest.ErrorOf(fmt.Fprintf(c, "POST /v1/files HTTP/1.1\r\nHost: p\r\nContent-Length: %d\r\n\r\n%s", len(body), body)))
		resp, err := http.ReadResponse(answers, nil)
		must(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.Close {
			t.Fatalf("request %d ended its connection", i+1)
		}
	}
}

// TestEarlyAnswerToLargeBody checks that an upstream may refuse a body before it has read
// all of it.
func TestEarlyAnswerToLargeBody(t *testing.T) {
	w := newEarly(t)
	s, _ := start(t, w)
	c := dial(t, s)
	_, _ = io.WriteString(c, "POST /v1/files HTTP/1.1\r\nHost: p\r\nContent-Length: 10000000\r\n\r\n"+strings.Repeat("x", 9000))
	resp, err := http.ReadResponse(newReader(c), nil)
	must(t, err)
	if resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
		t.Errorf("status %d, close %v", resp.StatusCode, resp.Close)
	}
}

// TestRestOfBodyIsNoRequest checks that the unread rest of a body is not interpreted as the
// next request.
func TestRestOfBodyIsNoRequest(t *testing.T) {
	w := newEarly(t)
	s, _ := start(t, w)
	c := dial(t, s)
	smuggled := "GET /smuggled HTTP/1.1\r\nHost: p\r\n\r\n"
	_, _ = io.WriteString(c, "POST /v1/files HTTP/1.1\r\nHost: p\r\nContent-Length: 200000\r\n\r\n"+strings.Repeat("x", 100000)+smuggled)
	got, _ := io.ReadAll(c)
	if n := bytes.Count(got, []byte("HTTP/1.1 ")); n != 1 {
		t.Errorf("%d answers: %q", n, got)
	}
}

func TestRequestsThatHideAnother(t *testing.T) {
	w := newStub(t, say(okAnswer))
	s, _ := start(t, w.url())
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: p\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		"POST / HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: p\r\nContent-Length : 5\r\n\r\nhello",
		"GET / HTTP/1.1\r\nHost: p\r\n folded: 1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: p\r\nX A: 1\r\nContent-Length: 5\r\n\r\nhello",
		"POST / HTTP/1.1\r\nHost: p\r\nX\tA: 1\r\nContent-Length: 5\r\n\r\nhello",
		"OPTIONS * HTTP/1.1\r\nHost: p\r\n\r\n",
		"GET v1/models HTTP/1.1\r\nHost: p\r\n\r\n",
		"CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n\r\n",
	} {
		got, _ := talk(t, s, request)
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") {
			t.Errorf("%q: answer %q", request, got)
		}
	}
	if got := w.requests(); len(got) != 0 {
		t.Errorf("upstream got %q", got)
	}
}

// TestPipelinedRequests checks that no discarded answers of the server itself appear
// between the relayed ones.
func TestPipelinedRequests(t *testing.T) {
	w := newStub(t, say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"))
	s, _ := start(t, w.url())
	one := "POST /v1/x HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\n\r\nhi"
	got, err := talk(t, s, one+one+strings.Replace(one, "Host: p", "Host: p\r\nExpect: 100-continue\r\nConnection: close", 1))
	must(t, err)
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
	want := answer + answer + "HTTP/1.1 100 Continue\r\n\r\n" + strings.Replace(answer, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPiecesOfABody checks that a body arrives unchanged however it is split, directly
// followed by the next request, both if the proxy reads the whole body and if it streams
// it.
func TestPiecesOfABody(t *testing.T) {
	for _, length := range []int{2, relayedBody - 10, 3 * relayedBody} {
		body := strings.Repeat("0123456789", length/10+1)[:length]
		head := fmt.Sprintf("POST /v1/x HTTP/1.1\r\nHost: p\r\nContent-Length: %d\r\n\r\n", length)
		last := strings.Replace(head, "Host: p", "Host: p\r\nConnection: close", 1)
		all, whole := head+body+last+body, len(head)+length
		for _, cuts := range [][]int{nil, {len(head)}, {len(head) / 2, len(head) + 1}, {whole - 1}, {whole + 1}, {len(head) + length/2, whole + len(last)}, {whole + len(last) + 1}} {
			w := newStub(t, say(okAnswer))
			s, _ := start(t, w.url())
			c, at := dial(t, s), 0
			for _, cut := range append(cuts, len(all)) {
				must(t, helptest.ErrorOf(io.WriteString(c, all[at:cut])))
				at = cut
			}
			must(t, helptest.ErrorOf(io.ReadAll(c)))
			got := w.requests()
			if len(got) != 2 || !strings.HasSuffix(got[0], "\r\n\r\n"+body) || !strings.HasSuffix(got[1], "\r\n\r\n"+body) {
				t.Errorf("%d bytes, cuts %v: upstream got %d requests, want both bodies unchanged", length, cuts, len(got))
			}
		}
	}
}

func post(t testing.TB, cl *http.Client, url, body string, status int) []byte {
	t.Helper()
	resp, err := cl.Post(url, "application/json", strings.NewReader(body))
	b := helptest.Body(t, resp, err)
	if resp.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", resp.StatusCode, status, b)
	}
	return b
}
