package cli

import (
	"strconv"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestMissingConsentIsReported checks that only the step of the consent fails.
func TestMissingConsentIsReported(t *testing.T) {
	g, err := graphititest.Start(graphititest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	for _, consent := range []bool{true, false} {
		cfg, err := config.Load(config.Sources{Flags: map[string]string{"memory.endpoint": g.URL(), "memory.consent": strconv.FormatBool(consent), "data_dir": t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := ConnectMemory(cfg, func() *config.Config { return cfg }, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := TryConnection(t.Context(), &out, m, cfg, true, false); err != nil {
			t.Errorf("%v: %s", err, out.String())
		}
		if said := strings.Contains(out.String(), "! consent: not given"); said == consent {
			t.Errorf("consent %v: %s", consent, out.String())
		}
		if err := m.Memory().Close(); err != nil {
			t.Error(err)
		}
	}
}
