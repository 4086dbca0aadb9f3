package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestALineForEachRequest checks that each request is logged at info, without the text of
// messages and without anything that resembles a key, and that log.requests=false turns the
// lines off.
func TestALineForEachRequest(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"true", "false"} {
		w := start(t, t.TempDir(), map[string]string{"log.requests": on})
		w.say("My cat is called Miso.")
		if resp, err := w.client.Get("http://" + w.app.proxy.Addr().String() + "/v1/models/sk-proj-4kT9wQz7LmX2vBn8JcY5hDf3GsP6aEu1?key=hidden"); err == nil {
			resp.Body.Close()
		}
		if resp, err := w.client.Post("http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", "application/json", http.NoBody); err == nil {
			resp.Body.Close()
		}
		var lines []string
		enough := func() bool {
			lines = nil
			for line := range strings.Lines(w.log.String()) {
				if strings.Contains(line, `"msg":"request"`) || strings.Contains(line, "msg=request ") {
					lines = append(lines, line)
				}
			}
			return len(lines) >= 3 || on == "false"
		}
		waitUntil(t, "the lines", enough)
		if on == "false" {
			w.stop()
			if enough(); len(lines) > 0 {
				t.Errorf("got %q, want none", lines)
			}
			continue
		}
		all := strings.Join(lines, "")
		// A line may follow those of later requests.
		slices.SortFunc(lines, func(a, b string) int {
			return strings.Compare(a[strings.LastIndex(a, "-"):], b[strings.LastIndex(b, "-"):])
		})
		for _, want := range []string{" client=Go-http-client ", " model=stand-in ", " upstream=openai ", " added_ms=", " input_tokens=", " output_tokens="} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("the line %s lacks %s", lines[0], want)
			}
		}
		if len(lines) != 3 || strings.Contains(all, "Miso") || strings.Contains(all, "sk-proj") || strings.Contains(all, "hidden") ||
			!strings.Contains(lines[0], "INFO") || !strings.Contains(lines[0], "/v1/chat/completions") || !strings.Contains(lines[0], "empty; facts=0") {
			t.Errorf("%d: %s", len(lines), all)
		}
	}
}
