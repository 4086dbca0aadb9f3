package main

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

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
