package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// hello returns a chat body with a message of size bytes.
func hello(size int) string {
	return `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", size) + `"}]}`
}

// echo starts an upstream that answers with the size of each body. It sends the path of
// each request to heads before it reads the body.
func echo(t *testing.T) (url string, heads chan string) {
	heads = make(chan string, 100)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heads <- r.URL.Path
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}))
	t.Cleanup(up.Close)
	return up.URL, heads
}

// TestWhoCannotHaveMemoryIsNotRead checks that a request without memory reaches the
// upstream before its body is complete, and takes no more of the budget than the relay
// needs.
func TestWhoCannotHaveMemoryIsNotRead(t *testing.T) {
	const size = 900 << 10
	for _, tc := range []struct {
		name, fields string
		change       func(*Memory)
		want         string
	}{
		{"memory is off", "", func(m *Memory) { *m = Memory{Off: Off{Reason: "consent"}} }, "off; facts=0; chars=0; reason=consent"},
		{"no credential", "", func(m *Memory) { m.Identity.Multi = true }, "off; facts=0; chars=0; reason=nobody"},
		{"a page of the web", "Origin: https://evil.example\r\n", func(*Memory) {}, "off; facts=0; chars=0; reason=untrusted"},
		{"a path that is skipped", "", func(m *Memory) { m.Rules.SkipPaths = []string{"/v1/*"} }, "off; facts=0; chars=0; reason=opt_out"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url, heads := echo(t)
			b := budget.New(0)
			s, _ := start(t, url, remembering(&inserting{}), func(o *Options) {
				tc.change(&o.Memory)
				o.Budget, o.Routes.Limits.InspectTotal = b, 10<<20
			})
			body := hello(size)
			c := dial(t, s)
			fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", tc.fields, len(body), body[:size/2])
			select {
			case <-heads:
			case <-time.After(helptest.Patience):
				t.Fatal("the upstream gets nothing before the body is there")
			}
			if b.Used() > relayedBody+16<<10 {
				t.Errorf("%d bytes are taken", b.Used())
			}
			_, _ = io.WriteString(c, body[size/2:])
			resp, err := http.ReadResponse(newReader(c), nil)
			must(t, err)
			memory := regexp.MustCompile(` ms=\d+;`).ReplaceAllString(resp.Header.Get(memoryHeader), "")
			if got, _ := io.ReadAll(resp.Body); string(got) != fmt.Sprint(len(body)) || memory != tc.want {
				t.Errorf("%s bytes arrived, %s: %s; want %s", got, memoryHeader, memory, tc.want)
			}
		})
	}
}

// TestBudgetOfInspection checks that requests beyond the budget are forwarded completely,
// without memory, and that later requests have memory again.
func TestBudgetOfInspection(t *testing.T) {
	url, _ := echo(t)
	b := budget.New(0)
	s, _ := start(t, url, remembering(&inserting{}), func(o *Options) { o.Budget, o.Routes.Limits.InspectTotal = b, 600<<10 })
	post := func(body, encoding string, chunked bool) (header string) {
		t.Helper()
		var r io.Reader = strings.NewReader(body)
		if chunked {
			r = io.MultiReader(r)
		}
		req, _ := http.NewRequest(http.MethodPost, "http://"+s.Addr().String()+"/v1/chat/completions", r)
		req.Header.Set("X-Graphiti-Session", "s")
		if encoding != "" {
			req.Header.Set("Content-Encoding", encoding)
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		got, _ := io.ReadAll(resp.Body)
		header = resp.Header.Get(memoryHeader)
		want := len(body)
		if !strings.Contains(header, "reason=") { // inserting adds a space
			want++
		}
		if string(got) != fmt.Sprint(want) {
			t.Errorf("%s of %d bytes arrived: %s", got, want, header)
		}
		return header
	}
	others := []budget.Share{b.Share(), b.Share(), b.Share()}
	for _, chunked := range []bool{false, true} {
		if h := post(hello(40<<10), "", chunked); strings.Contains(h, "reason=") {
			t.Errorf("chunked %v: there is room, and %s", chunked, h)
		}
		if h := post(hello(800<<10), "", chunked); !strings.HasPrefix(h, "skipped;") || !strings.HasSuffix(h, "reason=busy") {
			t.Errorf("chunked %v: there is no room, and %s", chunked, h)
		}
		for late := time.Now().Add(10 * time.Second); b.Used() != 0 && time.Now().Before(late); {
			runtime.Gosched() // the share is released after the answer
		}
		for i := range others {
			if !others[i].Grow(200<<10 - 300) {
				t.Fatal("they cannot have it")
			}
		}
		if h := post(hello(40<<10), "", chunked); !strings.HasSuffix(h, "reason=busy") {
			t.Errorf("chunked %v: others have it all, and %s", chunked, h)
		}
		for i := range others {
			others[i].Release()
		}
	}
	s.Shutdown(t.Context())
	if b.Used() != 0 {
		t.Errorf("%d bytes stay taken", b.Used())
	}
}

// TestInspectionEndsWithRecall checks that a request is forwarded without memory if parsing
// its body takes longer than recall may.
func TestInspectionEndsWithRecall(t *testing.T) {
	url, _ := echo(t)
	s, _ := start(t, url, remembering(&inserting{}), func(o *Options) { o.Memory.Timeout = time.Nanosecond })
	body := `{"model":"m","x":[` + strings.Repeat("{},", 200<<10) + `{}],"messages":[{"role":"user","content":"x"}]}`
	resp, err := http.Post("http://"+s.Addr().String()+"/v1/chat/completions", "application/json", strings.NewReader(body))
	must(t, err)
	defer resp.Body.Close()
	got, _ := io.ReadAll(resp.Body)
	if h := resp.Header.Get(memoryHeader); string(got) != fmt.Sprint(len(body)) || !strings.HasPrefix(h, "timeout;") || !strings.HasSuffix(h, "reason=too_large") {
		t.Errorf("%s bytes arrived: %s", got, h)
	}
}

// TestClaimedFrameTakesNothing checks that a frame is charged to the budget by its received
// bytes, not by its declared length, and that a frame larger than the budget still arrives.
func TestClaimedFrameTakesNothing(t *testing.T) {
	for _, total := range []int{64 << 20, 8 << 10} {
		const size = 100 << 10
		got, read := make([]byte, size+14), make(chan error, 2)
		half := make(chan struct{})
		b := budget.New(0)
		_, c, _ := intercepting(t, func(c net.Conn) {
			_, err := io.ReadFull(c, got)
			read <- err
		}, func(o *Options) { o.Budget, o.Routes.Limits.InspectTotal = b, total })
		frame := frameOf(ws.OpText, true, true, size, hello(size)[:size])
		_, _ = c.Write(frame[:14])
		go func() { _, _ = c.Write(frame[14:][:10]); close(half) }()
		<-half
		if used := b.Used(); used > 8<<10 {
			t.Errorf("24 bytes of a frame take %d", used)
		}
		_, _ = c.Write(frame[24:])
		if err := <-read; err != nil || !bytes.Equal(got, frame[:len(got)]) {
			t.Errorf("%d bytes of memory: %q… arrived (%v)", total, got[:50], err)
		}
	}
}

// TestEmptyFramesArePaidFor checks that empty frames count toward the budget, and that a
// message of too many of them arrives unchanged.
func TestEmptyFramesArePaidFor(t *testing.T) {
	const frames, total = 20000, 32 << 10
	sent := frameOf(ws.OpText, false, true, 0, "")
	for range frames {
		sent = append(sent, frameOf(ws.OpContinuation, false, true, 0, "")...)
	}
	got, read := make([]byte, len(sent)), make(chan error, 2)
	b := budget.New(0)
	_, c, _ := intercepting(t, func(c net.Conn) {
		_ = c.SetReadDeadline(time.Now().Add(helptest.Patience))
		_, err := io.ReadFull(c, got)
		read <- err
	}, func(o *Options) { o.Budget, o.Routes.Limits.InspectTotal = b, total })
	must(t, helptest.ErrorOf(c.Write(sent)))
	if err := <-read; err != nil || !bytes.Equal(got, sent) {
		t.Errorf("they did not arrive as they were sent (%v)", err)
	}
	if used := b.Used(); used != 0 {
		t.Errorf("%d bytes stay taken", used)
	}
}

type noRoom struct{}

func (noRoom) Grow(int) bool { return false }

// TestStopped checks the status and the reason in the response header for each limit.
func TestStopped(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`)
	for name, tc := range map[string]struct {
		limits dialect.Limits
		ok     bool
		want   string
	}{
		"messages": {dialect.Limits{Messages: 1}, false, "skipped too_large"},
		"memory":   {dialect.Limits{Room: noRoom{}}, false, "skipped busy"},
		"time":     {dialect.Limits{Until: time.Unix(1, 0)}, false, "timeout too_large"},
		"none":     {dialect.Limits{}, true, "skipped encoding"},
	} {
		var c dialect.Conversation
		c.Limit(tc.limits)
		ok := chat.Dialect{}.Parse(body, &c)
		if no := stopped(&c); ok != tc.ok || fmt.Sprint(no.Status, " ", no.Reason) != tc.want {
			t.Errorf("%s: understood %v, %+v", name, ok, no)
		}
	}
}
