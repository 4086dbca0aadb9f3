package cli

import (
	"strings"
	"testing"
)

// TestConfigCheckNotes checks that config check notes settings without consent.
func TestConfigCheckNotes(t *testing.T) {
	const url = "http://127.0.0.1:11434/v1"
	for name, tc := range map[string]struct {
		set  []string
		note string // part of the note; "" for none
	}{
		"a model":             {[]string{"distil.url=" + url, "distil.model=m1", "memory.consent=" + url}, ""},
		"no consent":          {[]string{"distil.url=" + url, "distil.model=m1"}, "facts are OFF: to send conversations to " + url},
		"consent for another": {[]string{"distil.url=" + url, "distil.model=m1", "memory.consent=http://elsewhere.example"}, "facts are OFF"},
		"a service":           {[]string{"memory.endpoint=http://127.0.0.1:8000"}, "memory is OFF: Graphiti at http://127.0.0.1:8000 needs your consent"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"config", "check"}
			for _, s := range tc.set {
				args = append(args, "--set", s)
			}
			out, err := runConfig(t, t.TempDir(), args...)
			if err != nil || !strings.Contains(out, tc.note) || tc.note == "" && strings.Contains(out, "OFF") {
				t.Errorf("got %s, %v; want the note %q", out, err, tc.note)
			}
		})
	}
}
