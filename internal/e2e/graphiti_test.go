//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// graphitiService is graphiti-core with a real graph database, served by
// graphiti/service.py, which fails in the same ways as Graphiti's own server.
type graphitiService struct {
	t    *testing.T
	db   string
	port string
	cmd  *exec.Cmd
}

func startGraphiti(t *testing.T) *graphitiService {
	t.Helper()
	if _, err := os.Stat(".cache/graphiti/kuzu"); err != nil {
		t.Skip("SKIPPED LOUDLY: graphiti-core is not installed; run internal/e2e/install.sh where PyPI is reached")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	g := &graphitiService{t: t, db: filepath.Join(t.TempDir(), "graph"), port: port}
	g.start()
	t.Cleanup(g.stop)
	return g
}

func (g *graphitiService) url() string { return "http://127.0.0.1:" + g.port }

func (g *graphitiService) start() {
	g.t.Helper()
	g.cmd = exec.Command("python3", "-W", "ignore", "graphiti/service.py", "--port", g.port, "--db", g.db)
	g.cmd.Env = append(os.Environ(), "PYTHONPATH=.cache/graphiti")
	if testing.Verbose() {
		g.cmd.Stderr = io.Discard // a dying worker prints tracebacks
	}
	out, err := g.cmd.StdoutPipe()
	must(g.t, err)
	must(g.t, g.cmd.Start())
	if !bufio.NewScanner(out).Scan() {
		g.t.Fatal("the service of graphiti-core did not start")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
}

// stop ends the service; its queue is lost. Kuzu does not survive SIGKILL, so only a
// process that ignores SIGTERM gets it.
func (g *graphitiService) stop() {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(30*time.Second, func() { _ = g.cmd.Process.Kill() })
	defer kill.Stop()
	_ = g.cmd.Wait()
}

// episodes counts the episodes of a group by their text before the assistant's answer.
func (g *graphitiService) episodes(group string) map[string]int {
	g.t.Helper()
	resp, err := http.Get(g.url() + "/episodes/" + group + "?last_n=1000")
	must(g.t, err)
	defer resp.Body.Close()
	var list []struct{ Content string }
	must(g.t, json.NewDecoder(resp.Body).Decode(&list))
	count := make(map[string]int)
	for _, e := range list {
		said, _, _ := strings.Cut(e.Content, "\n(assistant): ")
		count[said]++
	}
	return count
}

// queue is the proxy's report of its queue.
type queue struct {
	Pending, Delivered, Verified, Dropped, Dead, Lost int
	Stalled                                           string `json:"stalled_since"`
}

func (w *world) queue(t *testing.T) (q queue) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.admin+"/api/v1/queue", nil)
	must(t, err)
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	must(t, json.NewDecoder(resp.Body).Decode(&q))
	return q
}

func (w *world) until(t *testing.T, what string, ok func(queue) bool) {
	t.Helper()
	w.eventually(t, what, func() bool { return ok(w.queue(t)) })
}

// eventually waits until a condition holds.
func (w *world) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s: %+v", what, w.queue(t))
		}
	}
}

// tell sends one message in a new conversation, and returns the answer.
func (w *world) tell(t *testing.T, text string) string {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"model": "m", "messages": []any{user(text)}})
	resp, err := http.Post(w.url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	must(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v, want no error, Status 200", resp.Status, err)
	}
	return string(answer)
}

// TestRealGraphiti checks that a turn reaches the graph of graphiti-core and is recalled
// from it. A restart of Graphiti, or a worker that dies silently, neither loses nor
// duplicates a turn, and a message that kills the worker each time becomes a dead letter.
func TestRealGraphiti(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t)
	w := serve(t, "GRAPHITI_URL="+g.url(), "GRAPHITI_PROXY_MEMORY_CONSENT=true", "GRAPHITI_PROXY_INGEST_STALL_AFTER=4s",
		"GRAPHITI_PROXY_IDENTITY_OWNER=user:josh", "GRAPHITI_PROXY_IDENTITY_GROUP_IDS=raw", "GRAPHITI_PROXY_LOG_LEVEL=error",
		"GRAPHITI_PROXY_MEMORY_TIMEOUT=5s")
	said := 0
	tell := func(n int) {
		for range n {
			w.tell(t, fmt.Sprintf("Ada met guest number %d in London.", said))
			said++
		}
	}
	w.tell(t, "My cat is called Miso.")
	w.until(t, "the first turn", func(q queue) bool { return q.Delivered == 1 })
	if answer := w.tell(t, "What is my cat called?"); !strings.Contains(answer, "Miso") {
		t.Errorf("the memory did not arrive: %s", answer)
	}
	start := time.Now()
	tell(5)
	w.until(t, "more turns", func(q queue) bool { return q.Delivered == 6 }) // Graphiti gets no copy of the question
	t.Logf("%.1f s for a turn", time.Since(start).Seconds()/5)

	tell(6)
	time.Sleep(time.Second)
	g.stop()
	tell(2)
	g.start()
	w.until(t, "what a stopped Graphiti lost", func(q queue) bool { return q.Delivered == 14 && q.Pending == 0 })
	t.Logf("after a restart: %+v", w.queue(t))

	tell(1)
	w.tell(t, "Eve says [[raise]] to the model.")
	tell(3)
	w.until(t, "the turns in the queue", func(q queue) bool { return q.Delivered+q.Pending == 19 })
	for range 8 {
		w.until(t, "a stall, or the end", func(q queue) bool { return q.Stalled != "" || q.Pending == 0 })
		if w.queue(t).Pending == 0 {
			break
		}
		g.stop()
		g.start()
		w.until(t, "work", func(q queue) bool { return q.Stalled == "" })
	}
	w.until(t, "the rest", func(q queue) bool { return q.Pending == 0 })
	q := w.queue(t)
	t.Logf("after a worker that died of one message each time: %+v", q)
	if q.Dead != 1 || q.Delivered != 18 || q.Dropped != 0 {
		t.Errorf("got %+v, want Dead 1, Delivered 18, Dropped 0", q)
	}
	held := g.episodes("user_josh")
	for i := range said {
		if n := held[fmt.Sprintf("(user): Ada met guest number %d in London.", i)]; n != 1 {
			t.Errorf("turn %d is there %d times", i, n)
		}
	}
	if len(held) == 0 || held["(user): My cat is called Miso."] != 1 {
		t.Errorf("got %v, want the message about Miso once", held)
	}
}

// refuse makes the model answer completions and embeddings with an error status; 0 stops
// that.
func (g *graphitiService) refuse(complete, embed int) {
	g.t.Helper()
	resp, err := http.Post(g.url()+"/model/refusals", "application/json", strings.NewReader(fmt.Sprintf(`{"complete":%d,"embed":%d}`, complete, embed)))
	must(g.t, err)
	resp.Body.Close()
}

// TestRealGraphitiRecovers checks that the proxy recalls turns while Graphiti is down, the
// newest of twenty corrections first, and that each turn arrives exactly once after a
// restart and after a rate limit of the model that ends the worker. While the embedding
// model is missing, the status reports that the search fails.
func TestRealGraphitiRecovers(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t)
	w := serve(t, "GRAPHITI_URL="+g.url(), "GRAPHITI_PROXY_MEMORY_CONSENT=true", "GRAPHITI_PROXY_INGEST_STALL_AFTER=4s",
		"GRAPHITI_PROXY_IDENTITY_OWNER=user:josh", "GRAPHITI_PROXY_IDENTITY_GROUP_IDS=raw", "GRAPHITI_PROXY_LOG_LEVEL=error",
		"GRAPHITI_PROXY_MEMORY_TIMEOUT=5s")
	w.tell(t, "The staging database listens on port 6543.")
	w.until(t, "the first turn", func(q queue) bool { return q.Delivered == 1 })

	g.stop()
	for i := range 20 {
		w.tell(t, fmt.Sprintf("The staging database has moved now to port %d.", 8000+i))
	}
	w.until(t, "the corrections in the queue", func(q queue) bool { return q.Pending == 20 })
	sent, asked := "", 0
	w.eventually(t, "the newest port to be known", func() bool {
		asked++ // the same message again gets the same block
		w.tell(t, fmt.Sprintf("On which port does the staging database listen? I ask for the %dth time.", asked))
		all := w.model.Requests()
		sent = string(all[len(all)-1].Body)
		return strings.Contains(sent, "8019")
	})
	if first, _, _ := strings.Cut(sent, "6543"); !strings.Contains(first, "8019") {
		t.Errorf("while Graphiti is away: got %s, want the newest port before the old one", sent)
	}
	back := func(what string) {
		t.Helper()
		began := time.Now()
		w.until(t, what, func(q queue) bool { return q.Pending == 0 && q.Dead == 0 })
		t.Logf("%s: %.1f s", what, time.Since(began).Seconds())
	}
	g.start()
	back("the corrections, after a restart")

	g.refuse(http.StatusTooManyRequests, 0)
	w.tell(t, "Ada met Grace in London.")
	w.until(t, "a stall", func(q queue) bool { return q.Stalled != "" })
	g.stop()
	g.start() // refuses nothing
	back("a message, after a rate limit and a restart")

	g.refuse(0, http.StatusNotFound)
	w.eventually(t, "the search to be reported", func() bool {
		_, status := w.get(t, "", "status?fresh=true")
		return strings.Contains(status, "search fails")
	})
	g.refuse(0, 0)
	w.eventually(t, "the search to work", func() bool {
		_, status := w.get(t, "", "status?fresh=true")
		return !strings.Contains(status, "search fails")
	})

	held := g.episodes("user_josh")
	for i := range 20 {
		if n := held[fmt.Sprintf("(user): The staging database has moved now to port %d.", 8000+i)]; n != 1 {
			t.Errorf("got correction %d %d times, want it once", i, n)
		}
	}
	if n := held["(user): Ada met Grace in London."]; n != 1 {
		t.Errorf("got the message of the rate limit %d times, want it once", n)
	}
}

// TestRealGraphitiOverMCP checks delivery through the tools of Graphiti's MCP server,
// served by the same MCP library. Each restart ends the session, and a message that fails
// affects no other. A message that fails because the embedding model is missing arrives
// without a restart as soon as the model works again.
func TestRealGraphitiOverMCP(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t)
	w := serve(t, "GRAPHITI_PROXY_MEMORY_BACKEND=graphiti-mcp", "GRAPHITI_PROXY_MEMORY_ENDPOINT="+g.url(), "GRAPHITI_PROXY_MEMORY_CONSENT=true",
		"GRAPHITI_PROXY_INGEST_STALL_AFTER=4s", "GRAPHITI_PROXY_IDENTITY_OWNER=user:josh", "GRAPHITI_PROXY_IDENTITY_GROUP_IDS=raw",
		"GRAPHITI_PROXY_LOG_LEVEL=error", "GRAPHITI_PROXY_MEMORY_TIMEOUT=5s")
	w.tell(t, "My cat is called Miso.")
	w.until(t, "the first turn", func(q queue) bool { return q.Delivered == 1 })
	if answer := w.tell(t, "What is my cat called?"); !strings.Contains(answer, "Miso") {
		t.Errorf("the memory did not arrive: %s", answer)
	}
	for i := range 5 {
		w.tell(t, fmt.Sprintf("Ada met guest number %d in London.", i))
		if i == 2 {
			g.stop()
		}
	}
	w.tell(t, "Eve says [[raise]] to the model.")
	w.tell(t, "Ada met guest number 5 in London.")
	g.start()
	// A turn that kills the worker is given up after about three tests, which become rare.
	w.until(t, "all but one", func(q queue) bool { return q.Delivered == 7 && q.Dead+q.Pending == 1 })

	g.refuse(0, http.StatusNotFound)
	w.tell(t, "Ada met guest number 6 in London.")
	w.until(t, "a stall", func(q queue) bool { return q.Stalled != "" })
	g.refuse(0, 0)
	w.until(t, "the message that had no vector", func(q queue) bool { return q.Delivered == 8 && q.Dead+q.Pending == 1 })
	held := g.episodes("user_josh")
	for i := range 7 {
		if n := held[fmt.Sprintf("(user): Ada met guest number %d in London.", i)]; n != 1 {
			t.Errorf("turn %d is there %d times", i, n)
		}
	}
}
