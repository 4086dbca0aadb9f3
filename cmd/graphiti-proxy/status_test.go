package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestHealthDoesNotWaitForTheMemory checks that readiness, the queue and the status are
// reported without a call to the memory, which may hang and pays for each search. The
// status command still calls it.
func TestHealthDoesNotWaitForTheMemory(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	w := start(t, t.TempDir(), map[string]string{"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true"})
	w.remembers().prober.Ask(t.Context())
	g.Always(graphititest.Healthcheck, graphititest.Answer(http.StatusServiceUnavailable, ""))
	before := len(g.Requests())
	get := func(path string, out any) {
		t.Helper()
		resp, err := w.client.Get("http://" + w.app.admin.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(body, out) != nil {
			t.Fatalf("%s: got %s %s, want 200 and JSON", path, resp.Status, body)
		}
	}
	var ready struct {
		Ready  bool
		Memory health.MemoryStatus
	}
	for range 20 {
		get("/readyz", &ready)
		get("/api/v1/queue", &capture.QueueStatus{})
		get("/api/v1/status", &health.Status{})
	}
	probes := len(g.Requests()) - before // a few periodic ones, on a slow machine
	if probes >= 20 {
		t.Errorf("%d calls to the memory, want none for each request", probes)
	}
	if !ready.Ready || probes == 0 && ready.Memory.State != health.StateWorking || ready.Memory.Checked == nil {
		t.Errorf("got %+v, want Ready true, and a memory that works and was checked", ready)
	}
	first, err := cli.Ask(t.Context(), adminOf(w), service.Status, service.StatusRequest{Fresh: true})
	if err != nil || first.Memory.State != health.StateTrouble || first.Memory.Since == nil {
		t.Fatalf("got %+v, %v, want no error, State trouble, Since set", first.Memory, err)
	}
	again, err := cli.Ask(t.Context(), adminOf(w), service.Status, service.StatusRequest{Fresh: true})
	if err != nil || !again.Memory.Since.Equal(*first.Memory.Since) || again.Memory.Checked.Equal(*first.Memory.Checked) {
		t.Errorf("asked again: %+v, %v", again.Memory, err)
	}
	var out bytes.Buffer
	printStatus(&out, &again)
	if !strings.Contains(out.String(), "since 20") {
		t.Errorf("it does not say since when: %s", out.String())
	}
	get("/readyz", &ready)
	if ready.Memory.State != health.StateTrouble || strings.Contains(ready.Memory.Why, "127.0.0.1") {
		t.Errorf("got %+v, want State health.StateTrouble, no \"127.0.0.1\" in it", ready.Memory)
	}
}

// adminOf returns a client of a proxy's admin side.
func adminOf(w *world) *cli.AdminClient {
	return cli.NewClient(target(w.app.cfg))
}

// TestStatusOfRunningSettings checks that the status reports the running settings, and lists
// changed settings that need a restart, however often the file is reloaded.
func TestStatusOfRunningSettings(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	cfg := *w.app.cfg
	cfg.Memory.Backend, cfg.Memory.Endpoint = "graphiti", "http://elsewhere:8000"
	for range 2 {
		waiting, err := w.app.reload(&cfg)
		if err != nil || !slices.Equal(waiting, []string{"memory.backend", "memory.endpoint"}) {
			t.Errorf("%v wait, %v", waiting, err)
		}
	}
	s := w.app.status(t.Context(), true)
	if s.Memory.Backend != "embedded" || s.Memory.Where != w.app.cfg.DataDir || s.Memory.State != health.StateWorking || len(s.Waiting) != 2 {
		t.Errorf("%+v, %v wait", s.Memory, s.Waiting)
	}
}

// TestReachedQuota checks that a reached quota prevents only storing, and that the header, the
// status and the page Today name it.
func TestReachedQuota(t *testing.T) {
	t.Parallel()
	for setting, limit := range map[string]string{"quota.person": "messages=2", "quota.tenant": "bytes=10", "quota.all": "messages=1"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			w := start(t, t.TempDir(), map[string]string{setting: limit, "identity.owner": "user:josh"})
			w.say("My cat is called Miso.")
			waitUntil(t, "the quota", func() bool { return len(w.app.memory().queue().Full) > 0 })
			quota := "quota=" + strings.TrimPrefix(setting, "quota.")
			if _, header, _ := w.say("My dog is called Rex."); !strings.HasSuffix(header, quota) {
				t.Errorf("got %q, want %s", header, quota)
			}
			_, header, saw := w.say("What is my cat called?")
			if !strings.HasPrefix(header, "recalled; ") || !strings.Contains(saw, "Miso") || !strings.HasSuffix(header, quota) {
				t.Errorf("got %q, saw %s", header, saw)
			}
			if got := w.app.proxy.Observer().Messages()[graphiti.FateOff]; got != 2 {
				t.Errorf("got %d messages without storage, want 2", got)
			}
			if page := w.get("/"); !strings.Contains(page, "is reached") {
				t.Errorf("Today: %s", page)
			}
			if status, answer := w.asks("", "memory/promote", m{"kind": "decision", "text": "Use Postgres."}); status != 400 || !strings.Contains(answer, "quota") {
				t.Errorf("promote: %d %s", status, answer)
			}
		})
	}
}
