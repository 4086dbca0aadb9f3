package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// TestReload: a changed configuration is taken over from the next request on;
// what needs a restart is named and stays; one with a mistake changes nothing.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	w := start(t, dir, nil)
	w.say("My cat is called Miso.")
	w.delivered(1)
	load := func(settings map[string]string) (*config.Config, error) {
		flags := map[string]string{"listen": w.app.cfg.Listen, "admin.listen": w.app.cfg.Admin.Listen, "data_dir": dir, "upstream.openai": w.app.cfg.Upstream.OpenAI,
			"upstream.anthropic": w.app.cfg.Upstream.Anthropic, "recall.timeout": "2s"}
		for k, v := range settings {
			flags[k] = v
		}
		return config.Load(config.Sources{Flags: flags, Env: []string{"HOME=" + dir}, Dir: dir})
	}
	ask := func() string {
		_, header, _ := w.say("What is my cat called?")
		return header
	}
	for _, tc := range []struct {
		settings map[string]string
		header   string
		waiting  []string
	}{
		{map[string]string{"recall.enabled": "false"}, "off;", nil},
		{map[string]string{"memory.skip_models": "stand-*"}, "off;", nil},
		{map[string]string{"ingest.max_turns": "7", "recall.max_facts": "1"}, "recalled; facts=1", []string{"ingest.max_turns"}},
		{nil, "recalled; facts=", nil},
	} {
		cfg, err := load(tc.settings)
		if err != nil {
			t.Fatal(err)
		}
		waiting, err := w.app.reload(cfg)
		if tc.settings == nil {
			waiting = nil // what waited is back to what it was
		}
		if err != nil || !slices.Equal(waiting, tc.waiting) {
			t.Errorf("%v: %v wait, %v", tc.settings, waiting, err)
		}
		if header := ask(); !strings.HasPrefix(header, tc.header) {
			t.Errorf("%v: %s", tc.settings, header)
		}
	}
	for _, settings := range []map[string]string{{"identity.mode": "multi"}, {"identity.users_file": "/nowhere"}, {"recall.scopes": "galaxy"}} {
		cfg, err := load(settings)
		if err == nil {
			_, err = w.app.reload(cfg)
		}
		if err == nil {
			t.Errorf("%v: taken over", settings)
		}
		if header := ask(); !strings.HasPrefix(header, "recalled;") {
			t.Errorf("after %v: %s", settings, header)
		}
	}
}
