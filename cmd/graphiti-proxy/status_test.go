package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
)

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
