package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// bareUpstream starts an upstream that answers every request with 200, without allocating.
func bareUpstream(tb testing.TB) (url string) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ln.Close() })
	answer := []byte(okAnswer)
	serve := func(c net.Conn) {
		defer c.Close()
		for br := bufio.NewReaderSize(c, 64<<10); ; {
			length := 0
			for {
				line, err := br.ReadSlice('\n')
				if err != nil {
					return
				}
				if digits, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
					length = 0
					for _, d := range bytes.TrimSpace(digits) {
						length = length*10 + int(d-'0')
					}
				}
				if len(line) == 2 {
					break
				}
			}
			if _, err := br.Discard(length); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
	// This goroutine ends when the listener is closed.
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(c) // ends with its connection
		}
	}()
	return "http://" + ln.Addr().String()
}

// heldDecisions stores decisions in memory. Lookup allocates once, like that of package
// cache for decisions in memory.
type heldDecisions struct {
	*state
	mu   sync.Mutex // guards held
	held map[[16]byte]*inject.Decision
}

func (d *heldDecisions) Lookup(_ context.Context, _ int64, keys [][16]byte) ([]*inject.Decision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*inject.Decision, len(keys))
	for i, k := range keys {
		list[i] = d.held[k]
	}
	return list, nil
}

func (d *heldDecisions) Keep(_ context.Context, k [16]byte, made inject.Decision, _ ...string) (*inject.Decision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held = make(map[[16]byte]*inject.Decision)
	}
	d.held[k] = &made
	return &made, nil
}

// keptRequest returns a chat request of about size bytes, in a session.
func keptRequest(size int) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"m","messages":[{"role":"system","content":"You are kind. 00000000"}`)
	for b.Len() < size-900 {
		line := strings.Repeat("We spoke of the harvest, and of bread. ", 10)
		fmt.Fprintf(&b, `,{"role":"user","content":"%s"},{"role":"assistant","content":"%s"}`, line, line)
	}
	b.WriteString(`,{"role":"user","content":"What is my cat called?"}]}`)
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAuthorization: Bearer sk-bench\r\nContent-Type: application/json\r\nX-Graphiti-Session: s\r\nContent-Length: %d\r\n\r\n%s", chatPath, b.Len(), b.String())
}

// keptAsker returns a function that sends request to a proxy with memory, which repeats the
// same block each time, and reads the answer. If off is true, the proxy has no memory.
func keptAsker(tb testing.TB, request []byte, off bool, change ...func(*Options)) (ask func()) {
	tb.Helper()
	st, namer := newState(), graphiti.Namer{}
	m := inject.New(inject.Services{Search: st, Decisions: &heldDecisions{state: st}}, namer,
		inject.RecallSettings{Timeout: time.Minute, MaxFacts: 10, MaxChars: 1000})
	tb.Cleanup(m.Close)
	_, base := start(tb, bareUpstream(tb), append(change, func(o *Options) {
		if off {
			return
		}
		o.Memory = Memory{MemorySettings: MemorySettings{Identity: identity.Settings{Owner: "user:o"}, Recall: true, Ingest: true, Timeout: time.Minute}, Services: Services{Planner: m, Sessions: stateSessions{st}, Turns: keptTurns{}}}
	})...)
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	br := bufio.NewReader(c)
	length := len(okAnswer) - strings.Index(okAnswer, "\r\n\r\n") - 4
	ask = func() {
		if _, err := c.Write(request); err != nil {
			tb.Fatal(err)
		}
		for recalled := off; ; {
			line, err := br.ReadSlice('\n')
			if err != nil {
				tb.Fatal(err)
			}
			recalled = recalled || bytes.HasPrefix(line, []byte("X-Graphiti-Memory: recalled"))
			if len(line) == 2 {
				if !recalled {
					tb.Fatal("no block")
				}
				break
			}
		}
		if _, err := br.Discard(length); err != nil {
			tb.Fatal(err)
		}
	}
	ask()
	return ask
}

// BenchmarkKept measures requests over sockets whose block is repeated from memory. Only
// the proxy allocates.
func BenchmarkKept(b *testing.B) {
	for _, tc := range []struct {
		name string
		size int
		off  bool
	}{
		{"off/1KiB", 1 << 10, true}, {"kept/1KiB", 1 << 10, false}, {"kept/64KiB", 64 << 10, false}, {"kept/512KiB", 512 << 10, false},
	} {
		b.Run(tc.name, func(b *testing.B) {
			ask := keptAsker(b, keptRequest(tc.size), tc.off)
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
		})
	}
}
