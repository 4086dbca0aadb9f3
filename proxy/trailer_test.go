package proxy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// inserting is a Planner that inserts a space after the first byte of every request, and
// records the senders.
type inserting struct {
	mu   sync.Mutex // guards from
	from []graphiti.Who
}

func (p *inserting) Plan(_ context.Context, _ *dialect.Conversation, _ []dialect.Fingerprint, who graphiti.Who, _ bool, _ inject.Mode) inject.Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from = append(p.from, who)
	return inject.Plan{Inserts: []dialect.Insert{{At: 1, Text: []byte(" ")}}}
}
func (*inserting) Withdraw(inject.Unanswered)                   {}
func (*inserting) Writes(graphiti.Who) []graphiti.Target        { return nil }
func (*inserting) Read(*inject.Round) (d inject.Done)           { return d }
func (*inserting) Worked(graphiti.Who, int64, *inject.Done)     {}
func (*inserting) Remember(graphiti.Who, int64, inject.Ended)   {}
func (*inserting) Prefetch(graphiti.Who, int64, string, string) {}

// remembering returns an option that turns memory on, with the given planner.
func remembering(p Planner) func(*Options) {
	return func(o *Options) {
		o.Memory = Memory{MemorySettings: MemorySettings{Identity: identity.Settings{Owner: "user:owner"}, Recall: true, Timeout: time.Minute}, Services: Services{Planner: p}}
	}
}

// TestTrailersReachUpstream checks that trailers follow the body to the upstream, announced
// or not, whether the body is buffered or streamed. Trailers for the connection or the
// proxy are removed.
func TestTrailersReachUpstream(t *testing.T) {
	const (
		head    = "POST /v1/x HTTP/1.1\r\nHost: proxy\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
		trailer = "0\r\nX-Sum: 9\r\nX-Other: a b\r\n\r\n"
	)
	chunk := func(n int) string { return fmt.Sprintf("%x\r\n%s\r\n", n, strings.Repeat("y", n)) }
	for _, tc := range []struct{ name, fields, body, want string }{
		{"a small body", "Trailer: X-Sum\r\n", "3\r\nabc\r\n2\r\nde\r\n" + trailer, "5\r\nabcde\r\n" + trailer},
		{"none was announced", "", "3\r\nabc\r\n" + trailer, "3\r\nabc\r\n" + trailer},
		{"an empty body", "", trailer, trailer},
		{"a body that is sent from where it is", "", chunk(20<<10) + trailer, chunk(20<<10) + trailer},
		{"a body that is streamed", "Trailer: X-Sum\r\nTrailer: X-Other\r\n", chunk(100<<10) + trailer, ""},
		{"a field of the same name in the head", "X-Sum: 1\r\n", "3\r\nabc\r\n" + trailer, "3\r\nabc\r\n" + trailer},
		{"what belongs to the connection, or to us", "Connection: X-Hop\r\n", "3\r\nabc\r\n0\r\nX-Hop: 1\r\nX-Graphiti-User: u\r\nX-Sum: 9\r\n\r\n", "3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n"},
		{"announced and not sent", "Trailer: X-Sum\r\n", "3\r\nabc\r\n0\r\n\r\n", "abc"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newStub(t, say(okAnswer))
			s, _ := start(t, w.url())
			must(t, helptest.ErrorOf(talk(t, s, head+tc.fields+"\r\n"+tc.body)))
			got, body, _ := strings.Cut(w.requests()[0], "\r\n\r\n")
			if tc.want == "" {
				if got := strings.Count(body, "y"); got != 100<<10 || !strings.HasSuffix(body, "\r\n"+trailer) {
					t.Errorf("%d bytes of a body that ends %q", got, body[max(0, len(body)-100):])
				}
				return
			}
			if diff := cmp.Diff(tc.want, body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			chunked := strings.HasSuffix(tc.want, "\r\n\r\n")
			if strings.Contains(got, "Transfer-Encoding: chunked") != chunked || strings.Contains(got, "Content-Length") == chunked {
				t.Errorf("head %q", got)
			}
		})
	}
}

// TestTrailersStayWithMemory checks that trailers follow a body with an insertion, and that
// the chunk contains the insertion.
func TestTrailersStayWithMemory(t *testing.T) {
	for _, size := range []int{10, 20 << 10} {
		body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", size) + `"}]}`
		w := newStub(t, say(okAnswer))
		s, _ := start(t, w.url(), remembering(&inserting{}))
		request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Graphiti-Session: s\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%s\r\n0\r\nX-Sum: 9\r\n\r\n", len(body), body)
		must(t, helptest.ErrorOf(talk(t, s, request)))
		_, got, _ := strings.Cut(w.requests()[0], "\r\n\r\n")
		want := fmt.Sprintf("%x\r\n%s %s\r\n0\r\nX-Sum: 9\r\n\r\n", len(body)+1, body[:1], body[1:])
		if got != want {
			t.Errorf("%d bytes arrived as %.200q…", len(body), got)
		}
	}
}

// TestTrailersDoNotIdentify checks that identity headers count in the head and not
// in a trailer.
func TestTrailersDoNotIdentify(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	for _, tc := range []struct{ name, fields, trailer, want string }{
		{"no field in the head", "", "X-Graphiti-User: mallory\r\n", "user:owner"},
		{"an empty one", "X-Graphiti-User:\r\n", "X-Graphiti-User: mallory\r\n", "user:owner"},
		{"another one", "x-graphiti-user: ann\r\n", "X-Graphiti-User: mallory\r\nX-A: 1\r\nX-Graphiti-User: mallory\r\n", "user:ann"},
		{"other fields", "X-Graphiti-User: ann\r\n", "X-Sum: 9\r\nX-OpenWebUI-User-Id: mallory\r\n", "user:ann"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newStub(t, say(okAnswer))
			p := &inserting{}
			s, _ := start(t, w.url(), remembering(p))
			request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n%sX-Graphiti-Session: s\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n", tc.fields, len(body), body, tc.trailer)
			must(t, helptest.ErrorOf(talk(t, s, request)))
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.from) != 1 || p.from[0].User != tc.want || p.from[0].Session != "session:s" {
				t.Errorf("from %+v, want %s", p.from, tc.want)
			}
		})
	}
}
