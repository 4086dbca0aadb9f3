package cli

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

func TestFactsLine(t *testing.T) {
	const url = "http://127.0.0.1:11434/v1"
	for name, tc := range map[string]struct {
		change func(*config.Config)
		want   string // part of the line; "" for no line
	}{
		"no model":            {func(c *config.Config) { c.Distil.URL = "" }, ""},
		"a model":             {func(c *config.Config) { c.Memory.Consent = url }, "m1 at " + url + ", at most 9 tokens a day"},
		"no consent":          {func(*config.Config) {}, "needs your consent"},
		"paused":              {func(c *config.Config) { c.Memory.Consent, c.Distil.Pause = url, true }, "paused (distil.pause); m1"},
		"a service":           {func(c *config.Config) { c.Memory.Backend = "graphiti" }, "memory.backend embedded"},
		"the caller's own":    {func(c *config.Config) { c.Distil.URL, c.Distil.Upstream = "", true }, "m1 at the caller's provider"},
		"consent for another": {func(c *config.Config) { c.Memory.Consent = "http://elsewhere.example/v1" }, "OFF"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := &config.Config{}
			cfg.Memory.Backend, cfg.Distil.URL, cfg.Distil.Model, cfg.Distil.DailyTokens = "embedded", url, "m1", 9
			tc.change(cfg)
			if got := factsLine(cfg); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("factsLine = %q, want %q in it", got, tc.want)
			}
		})
	}
}
