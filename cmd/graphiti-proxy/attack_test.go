//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// room is the memory limit of the proxy under attack.
const room = 512 << 20

// An attack is a request that many clients send at the same time.
type attack struct {
	name  string
	count int
	send  func(ctx context.Context, url string) error
}

// attacks returns the attacks that once ended the process or took gigabytes.
func attacks() []attack {
	small := "{\"input\":[" + strings.Repeat("{},", 16<<20/3-8) + "{}]}" // 3 bytes a message
	packed := gzipped(small)
	dense := zstded(small)
	plain := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("hello ", 15<<20/6) + `"}]}`
	post := func(path, body string, header ...string) func(context.Context, string) error {
		return func(ctx context.Context, url string) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body))
			if err != nil {
				return err
			}
			for i := 0; i < len(header); i += 2 {
				req.Header.Set(header[i], header[i+1])
			}
			resp, err := attackers.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		}
	}
	return []attack{
		{fmt.Sprintf("1 × %d bytes of gzip, 16 MiB of {}", len(packed)), 1, post("/v1/responses", packed, "Content-Encoding", "gzip")},
		{fmt.Sprintf("200 × %d bytes of gzip, 16 MiB of {}", len(packed)), 200, post("/v1/responses", packed, "Content-Encoding", "gzip")},
		{fmt.Sprintf("50 × %d bytes of zstd, 16 MiB of {}", len(dense)), 50, post("/v1/responses", dense, "Content-Encoding", "zstd")},
		{"200 × 15 MiB in one message", 200, post("/v1/chat/completions", plain)},
		{"200 × 15 MiB from a page of the web", 200, post("/v1/chat/completions", plain, "Origin", "https://evil.example")},
		{"200 × gzip from a page of the web", 200, post("/v1/responses", packed, "Content-Encoding", "gzip", "Origin", "https://evil.example")},
		{"200 WebSockets that claim a frame of 15 MiB", 200, claimFrame},
	}
}

var attackers = &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}

func gzipped(s string) string {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

func zstded(s string) string {
	var b bytes.Buffer
	w, _ := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(16<<20))
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

// claimFrame opens a WebSocket, announces a long frame in 14 bytes, and sends no more until
// ctx ends.
func claimFrame(ctx context.Context, url string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	_, err = io.WriteString(c, "GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 512)); err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint64([]byte{0x81, 0x80 | 127}, 15<<20)
	if _, err := c.Write(append(frame, 1, 2, 3, 4)); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// swallow starts an upstream that reads its requests and answers briefly, and returns its
// URL.
func swallow(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			_, _ = io.Copy(io.Discard, rw)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"I see."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// victim is a proxy in a process of its own, with a record of its memory use.
type victim struct {
	process
	peak atomic.Int64
	dead atomic.Bool
}

// attacked starts a proxy. If wrap is not empty, it is a command that limits the memory of
// the proxy and then runs it.
func attacked(t *testing.T, wrap []string, set ...string) *victim {
	t.Helper()
	v := &victim{process: process{t: t, args: []string{"serve"}, binary: os.Getenv("ATTACK_BINARY"), wrap: wrap}}
	for _, s := range append([]string{
		"listen=127.0.0.1:0", "admin.listen=127.0.0.1:0", "data_dir=" + t.TempDir(), "upstream.openai=" + swallow(t),
		"websocket=intercept", "log.level=error",
	}, set...) {
		v.args = append(v.args, "--set", s)
	}
	v.start()
	gone := make(chan struct{})
	stop := make(chan struct{})
	go func() { // ends with the test
		defer close(gone)
		for {
			v.measure()
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-gone
		v.kill()
	})
	return v
}

// measure records the peak memory of the process, or its end: a zombie has no VmHWM line.
func (v *victim) measure() {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.cmd.Process.Pid))
	at := bytes.Index(b, []byte("VmHWM:"))
	if err != nil || at < 0 {
		v.dead.Store(true)
		return
	}
	kib, _ := strconv.ParseInt(strings.Fields(string(b[at:]))[1], 10, 64)
	v.peak.Store(max(v.peak.Load(), kib<<10))
}

// suffer runs all attacks of a list at once, and returns when they are over. WebSockets
// with claimed frames stay open as long as the others take.
func (v *victim) suffer(list ...attack) {
	url, _ := v.address()
	long, end := context.WithTimeout(context.Background(), 2*time.Minute)
	defer end()
	var posts, sockets sync.WaitGroup
	for _, a := range list {
		for range a.count {
			if strings.Contains(a.name, "WebSocket") {
				sockets.Go(func() { _ = a.send(long, url) })
				continue
			}
			posts.Go(func() { _ = a.send(long, url) })
		}
	}
	posts.Wait()
	if len(list) == 1 { // it may consist of WebSockets, which need some time
		select {
		case <-long.Done():
		case <-time.After(3 * time.Second):
		}
	}
	end()
	sockets.Wait()
	v.measure()
}

// limited returns a command that runs its arguments in a cgroup with a memory limit, or nil
// if this machine does not allow a new cgroup.
func limited(t *testing.T, most int) []string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, file := "", ""
		switch {
		case parts[1] == "memory":
			dir, file = "/sys/fs/cgroup/memory"+parts[2], "memory.limit_in_bytes"
		case parts[0] == "0" && parts[1] == "":
			dir, file = "/sys/fs/cgroup"+parts[2], "memory.max"
		}
		group := fmt.Sprintf("%s/graphiti-proxy-test-%d-%d", strings.TrimSuffix(dir, "/"), os.Getpid(), time.Now().UnixNano())
		if dir == "" || os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) })
		if os.WriteFile(group+"/"+file, []byte(strconv.Itoa(most)), 0o600) != nil {
			continue
		}
		return []string{"sh", "-c", "echo $$ > " + group + `/cgroup.procs && exec "$@"`, "sh"}
	}
	return nil
}

// TestMemoryUnderAttack checks that the process survives all attacks at once in 512 MiB,
// and that other clients get answers, with memory, meanwhile.
func TestMemoryUnderAttack(t *testing.T) {
	t.Parallel()
	long(t, "sends gigabytes")
	for name, set := range map[string][]string{
		"one person's machine":           nil,
		"many people, and no credential": {"identity.mode=multi"},
	} {
		t.Run(name, func(t *testing.T) {
			wrap := limited(t, room)
			if wrap == nil {
				t.Log("NO CGROUP can be made here: the bound is that of the process's own size")
			}
			v := attacked(t, wrap, set...)
			talking, silence := context.WithCancel(context.Background())
			var others sync.WaitGroup
			var answered, remembered atomic.Int64
			var longest atomic.Int64
			for n := range 4 {
				others.Go(func() {
					for i := 0; talking.Err() == nil; i++ {
						began := time.Now()
						header, err := v.chat(fmt.Sprintf("person-%d", n), i)
						if err != nil {
							t.Errorf("chat %d of person %d: %v", i, n, err)
							return
						}
						answered.Add(1)
						if !strings.Contains(header, "skipped") && !strings.Contains(header, "timeout") {
							remembered.Add(1)
						}
						longest.Store(max(longest.Load(), int64(time.Since(began))))
					}
				})
			}
			v.suffer(attacks()...)
			silence()
			others.Wait()
			t.Logf("peak %d MiB of %d; %d chats of others answered, %d with memory; the longest took %v",
				v.peak.Load()>>20, room>>20, answered.Load(), remembered.Load(), time.Duration(longest.Load()).Round(time.Millisecond))
			if v.dead.Load() || v.peak.Load() > room {
				t.Errorf("dead %v, peak %d MiB", v.dead.Load(), v.peak.Load()>>20)
			}
			if answered.Load() == 0 || remembered.Load() == 0 {
				t.Error("the others got nothing")
			}
		})
	}
}

// TestMemoryOfEachAttack logs the memory that each attack takes by itself, and checks that
// it fits in 512 MiB. ATTACK_BINARY may name another build to compare with. It gets 4 GiB,
// and so cannot take the whole machine.
func TestMemoryOfEachAttack(t *testing.T) {
	t.Parallel()
	long(t, "sends gigabytes")
	other, most := os.Getenv("ATTACK_BINARY") != "", room
	if other {
		most = 4 << 30
	}
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			wrap := limited(t, most)
			if wrap == nil && other {
				t.Skip("NO CGROUP can be made here, and the other build may take all memory")
			}
			v := attacked(t, wrap)
			v.suffer(a)
			t.Logf("| %s | %d MiB | dead %v", a.name, v.peak.Load()>>20, v.dead.Load())
			if !other && (v.dead.Load() || v.peak.Load() > room) {
				t.Errorf("dead %v, peak %d MiB", v.dead.Load(), v.peak.Load()>>20)
			}
		})
	}
}

// chat sends a message of a harmless client, and returns the memory header.
func (v *victim) chat(key string, i int) (header string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url, _ := v.address()
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"What did I say before number %d?"}]}`, i)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(b, []byte("I see.")) {
		return "", fmt.Errorf("%s %q: %w", resp.Status, b, err)
	}
	return resp.Header.Get("X-Graphiti-Memory"), nil
}
