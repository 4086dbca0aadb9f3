package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

var must = helptest.Must

// TestMain runs the program instead of the tests if the environment asks for it, so that
// tests can kill it.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_BINARY_RUNS") == "the program" {
		os.Exit(run(os.Args[1:]))
	}
	flag.Parse()
	// Tests wait more than they compute.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(inMemory(m.Run))
}

// inMemory runs the tests with temporary files in RAM if it can, because each turn syncs
// the data directory.
func inMemory(run func() int) int {
	const shm = "/dev/shm"
	if os.Getenv("TMPDIR") != "" {
		return run()
	}
	dir, err := os.MkdirTemp(shm, "graphiti-proxy-test-")
	if err != nil {
		return run() // on disk
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("TMPDIR", dir); err != nil {
		panic(err)
	}
	return run()
}

// long skips a test that takes minutes or gigabytes, unless LONG_TESTS is set.
func long(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("LONG_TESTS") == "" {
		t.Skip(why + "; LONG_TESTS=1 runs it")
	}
}

// process is a proxy in a process of its own, with new ports at each start.
type process struct {
	t      *testing.T
	args   []string
	binary string    // another build, or "" for this one
	wrap   []string  // the command that runs it, if any
	stderr io.Writer // nil for the test's
	solo   bool      // requests name no agent, so turns have one group

	mu    sync.Mutex // guards the fields below
	cmd   *exec.Cmd
	url   string
	admin string
}

// start starts the process and waits until it listens.
func (p *process) start() {
	p.t.Helper()
	cmd := p.command()
	cmd.Env = append(os.Environ(), "TEST_BINARY_RUNS=the program")
	if cmd.Stderr = p.stderr; p.stderr == nil {
		cmd.Stderr = os.Stderr
	}
	out, err := cmd.StdoutPipe()
	must(p.t, err)
	must(p.t, cmd.Start())
	var url, admin string
	lines := bufio.NewScanner(out)
	for admin == "" && lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 3 && fields[0] == "listening":
			url = fields[2]
		case len(fields) == 2 && fields[0] == "inspector":
			admin = fields[1]
		}
	}
	if admin == "" {
		p.t.Fatal("the proxy did not start")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.url, p.admin = cmd, url, admin
}

// command returns the command that runs the program, by default with the test binary.
func (p *process) command() *exec.Cmd {
	binary := p.binary
	if binary == "" {
		binary = os.Args[0]
	}
	line := append(append(append([]string{}, p.wrap...), binary), p.args...)
	return exec.Command(line[0], line[1:]...)
}

// kill ends the process like kill -9.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) address() (url, admin string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url, p.admin
}

func (p *process) queue() (s capture.QueueStatus, err error) {
	_, admin := p.address()
	resp, err := http.Get(admin + "/api/v1/queue")
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK { // such as 429: an empty status is not an empty queue
		return s, fmt.Errorf("queue: %s", resp.Status)
	}
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// ask sends a conversation and returns the answer, or an error if the answer is incomplete.
func (p *process) ask(session string, messages []map[string]string) (string, error) {
	url, _ := p.address()
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	if !p.solo {
		req.Header.Set("X-Graphiti-Agent", "ava")
	}
	if session != "" {
		req.Header.Set("X-Graphiti-Session", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var a struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK || len(a.Choices) == 0 {
		return "", errors.New(resp.Status)
	}
	return a.Choices[0].Message.Content, nil
}

// TestKillsLoseAndRepeatNoTurn checks that no turn is lost or stored twice. Five
// hundred turns arrive while the proxy is killed three times and Graphiti three times,
// once in silence. Then a hundred people get answers, the proxy is killed before any of
// those turns is on disk, and all clients return at once.
func TestKillsLoseAndRepeatNoTurn(t *testing.T) {
	t.Parallel()
	long(t, "takes half a minute")
	const conversations, length, kills, returning = 25, 20, 3, 100
	model := startModel(t)
	model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		said := c.Messages[len(c.Messages)-1].Text
		if _, after, ok := strings.Cut(said, "</graphiti_memory>\n\n"); ok {
			said = after
		}
		return proxytest.Reply{Text: "answer to " + said}
	})
	var dies atomic.Bool
	g, err := graphititest.Start(graphititest.Options{
		Delay:  200 * time.Microsecond,
		Raises: func(string, string) bool { return dies.Swap(false) },
	})
	must(t, err)
	defer g.Close()
	p, dir := &process{t: t, args: []string{"serve"}}, t.TempDir()
	for k, v := range map[string]string{
		"listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0", "data_dir": dir, "upstream.openai": model.URL(),
		"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true", "memory.timeout": "1s", "recall.timeout": "3s",
		"identity.owner": "user:josh", "identity.group_ids": "raw", "ingest.stall_after": "2s", "log.level": "error",
	} {
		p.args = append(p.args, "--set", k+"="+v)
	}
	p.start()
	defer func() { p.kill() }()

	// Each client continues its conversation with the answers it gets, and repeats a
	// request with an incomplete answer. The last turn of each conversation comes after the
	// faults: its history restores turns that were answered at the moment of a kill and are
	// not on disk.
	var answered, repeated atomic.Int64
	histories := make([][]map[string]string, conversations+returning)
	talk := func(n, from, to int) {
		session := ""
		if n%2 == 0 {
			session = fmt.Sprint("s", n)
		}
		for i := from; i < to; i++ {
			histories[n] = append(histories[n], map[string]string{"role": "user", "content": fmt.Sprintf("conversation %d says %d", n, i)})
			answer, err := p.ask(session, histories[n])
			for ; err != nil; answer, err = p.ask(session, histories[n]) {
				repeated.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
			answered.Add(1)
			histories[n] = append(histories[n], map[string]string{"role": "assistant", "content": answer})
		}
	}
	var clients sync.WaitGroup
	next := make(chan int)
	for range 8 {
		clients.Go(func() {
			for n := range next {
				talk(n, 0, length-1)
			}
		})
	}
	go func() {
		for n := range conversations {
			next <- n
		}
		close(next)
	}()

	// The faults, spread over the run.
	at := func(share int) { // percent of the turns
		for answered.Load() < int64(share*conversations*length/100) {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	for i := range kills {
		at(10 + 30*i)
		p.kill()
		p.start()
		at(20 + 30*i)
		if i == 1 { // in silence: it still accepts messages
			dies.Store(true)
			// A stall may be told already, from an earlier fault: a restart before the worker dies mends nothing.
			waitUntil(t, "the worker's death to be told", func() bool { s, err := p.queue(); return err == nil && !dies.Load() && s.Stalled != nil })
			g.Restart()
			continue
		}
		for _, c := range []graphititest.Call{graphititest.Messages, graphititest.Episodes, graphititest.Healthcheck, graphititest.Search} {
			g.Always(c, graphititest.Refuse())
		}
		g.Restart() // its queue is lost
		time.Sleep(300 * time.Millisecond)
		for _, c := range []graphititest.Call{graphititest.Messages, graphititest.Episodes, graphititest.Healthcheck, graphititest.Search} {
			g.Always(c, nil)
		}
	}
	clients.Wait()
	release := lockSpool(t, dir)
	for n := conversations; n < conversations+returning; n++ {
		clients.Go(func() { talk(n, 0, 1) })
	}
	clients.Wait()
	p.kill()
	release()
	p.start()
	turns := make(map[int]int) // by conversation
	for n := range conversations + returning {
		last := length
		if n >= conversations {
			last = 2
		}
		turns[n] = last
		clients.Go(func() { talk(n, last-1, last) })
	}
	clients.Wait()
	const all = conversations*length + 2*returning
	for range 9000 { // the tally below reports missing messages
		if s, err := p.queue(); err == nil && s.Pending == 0 && s.Delivered >= 2*all {
			break
		}
		time.Sleep(20 * time.Millisecond) // the admin side answers 100 calls a second
	}
	must(t, g.Settle(context.Background()))

	q, err := p.queue()
	must(t, err)
	missing, twice, held := tally(t, g, turns)
	t.Logf("%d turns to 2 groups, %d requests repeated, proxy killed %d times, Graphiti %d times, once in silence, and %d conversations came back at once:",
		answered.Load(), repeated.Load(), kills+1, kills, conversations+returning)
	t.Logf("%d messages held, %d missing, %d kept twice; %d turns delivered, %d verified, %d lost by Graphiti and sent again since the last start, %d messages accepted by Graphiti in all",
		held, missing, twice, q.Delivered, q.Verified, q.Lost, g.Counts().Accepted)
	if missing+twice > 0 || held != 4*all || q.Dead+q.Dropped > 0 {
		t.Errorf("got %+v, want %d messages held once each, none dead, none dropped", q, 4*all)
	}
}

// lockSpool makes writes to the spool wait, as on a slow disk, until release is called.
func lockSpool(t *testing.T, dir string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "memory.db")+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	must(t, err)
	tx, err := db.Begin()
	must(t, err)
	return func() {
		_ = tx.Rollback()
		db.Close()
	}
}

// tally checks two groups of Graphiti for each side of each turn, given the number of turns
// by conversation. It returns the number of missing, duplicate and stored sides.
func tally(t *testing.T, g *graphititest.Graphiti, turns map[int]int) (missing, twice, sides int) {
	t.Helper()
	for _, group := range []string{"user_josh", "agent_ava__user_josh"} {
		count := make(map[string]int)
		for _, e := range g.Episodes(group) {
			held := remote.EpisodeJSON{Name: e.Name, Content: e.Content, SourceDescription: e.SourceDescription}
			for _, side := range held.Row().Sides() {
				count["("+string(side.Role)+"): "+side.Text]++
				sides++
			}
		}
		for n, length := range turns {
			for i := range length {
				said := fmt.Sprintf("conversation %d says %d", n, i)
				for _, content := range []string{"(user): " + said, "(assistant): answer to " + said} {
					switch c := count[content]; {
					case c == 0:
						missing++
						t.Logf("%s misses %q", group, content)
					case c > 1:
						twice += c - 1
						t.Logf("%s holds %q %d times", group, content, c)
					}
				}
			}
		}
	}
	return missing, twice, sides
}

// waitUntil waits for a condition in other processes or in goroutines of a complete proxy.
var waitUntil = helptest.Until
