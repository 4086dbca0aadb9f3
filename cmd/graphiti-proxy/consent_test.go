package main

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestConsentIsExplainedOnce checks that the log explains, once for each endpoint after a start,
// which data the proxy sends there, how to stop this, and how to purge the data.
func TestConsentIsExplainedOnce(t *testing.T) {
	t.Parallel()
	g := startGraphiti(t, graphititest.Options{})
	const explains = "conversations are sent to this endpoint from now on"
	for name, settings := range map[string]map[string]string{
		"memory":    {"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": g.URL()},
		"embedding": {"embedding.url": g.URL(), "memory.consent": g.URL()},
		"facts":     {"distil.url": g.URL(), "distil.model": "m", "memory.consent": g.URL()},
	} {
		w := start(t, t.TempDir(), settings)
		if _, err := w.app.reload(w.app.cfg); err != nil {
			t.Fatal(err)
		}
		log := w.log.String()
		if got := strings.Count(log, explains); got != 1 {
			t.Errorf("%s: explained %d times, want once: %s", name, got, log)
		}
		for _, want := range []string{"endpoint=" + g.URL(), "sent=", `stop="memory.consent: false"`, `purge="graphiti-proxy memory forget`} {
			if !strings.Contains(log, want) {
				t.Errorf("%s: the log lacks %s: %s", name, want, log)
			}
		}
	}
	w := start(t, t.TempDir(), nil)
	if strings.Contains(w.log.String(), explains) {
		t.Errorf("without an endpoint: %s", w.log)
	}
}
