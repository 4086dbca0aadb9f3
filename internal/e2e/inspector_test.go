//go:build e2e

package e2e

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// visit returns a page of the inspector, without a browser.
func (w *world) visit(t *testing.T, path string) string {
	t.Helper()
	resp, err := http.Get(w.admin + path)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
	return string(b)
}

var link = regexp.MustCompile(`href="([^"]*)"`)

// linked returns the address of a page's first link that begins with a path, or "".
func (w *world) linked(t *testing.T, path, begins string) string {
	t.Helper()
	for _, m := range link.FindAllStringSubmatch(w.visit(t, path), -1) {
		if to := html.UnescapeString(m[1]); strings.HasPrefix(to, begins) {
			return to
		}
	}
	return ""
}

// pages returns all pages of the inspector, including the newest conversation and its first
// linked message if they exist.
func (w *world) pages(t *testing.T) []page {
	t.Helper()
	list := []page{{"today", "/"}, {"live", "/live"}, {"conversations", "/conversations"}, {"memory", "/memory"}, {"timeline", "/memory/show"},
		{"facts", "/search?kind=fact&state=valid"}, {"all facts", "/search?kind=fact"}, {"import", "/memory/import"}, {"forget", "/memory/forget"}, {"search", "/search"}, {"found", "/search?q=violin+museum"}, {"by week", "/memory/weeks"}, {"changes", "/changes"}, {"delivery", "/delivery"}}
	if to := w.linked(t, "/conversations", "/conversation/"); to != "" {
		list = append(list, page{"conversation", to}, page{"message", w.linked(t, to, "/message/")})
	}
	return list
}

// TestInspector visits every page with no message, some and 100,000. Colors and
// widths are independent, so each of them appears in two runs instead of in every
// combination.
func TestInspector(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fill  func(*testing.T, *world)
		looks []string
	}{
		{"no message", func(*testing.T, *world) {}, []string{"dark tablet"}},
		{"some messages", func(t *testing.T, w *world) {
			invented := readInvented(t)
			for _, c := range invented.Conversations[:6] {
				w.hold(t, &c)
			}
		}, []string{"light", "half a screen", "dark phone"}},
		{"100,000 messages", func(t *testing.T, w *world) {
			w.stop(t)
			w.importMany(t, 100_000)
			w.start(t)
			w.hold(t, &inventedConversation{Project: "project-0", Client: "opencode/1.18.33", Model: "m", Says: []string{"Which violin is in the museum, number 70?", "And the bicycle?"}})
		}, []string{"phone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := serve(t)
			c.fill(t, w)
			inBrowser(t, "look.mjs", map[string]any{"base": w.admin, "pages": w.pages(t), "looks": c.looks})
		})
	}
}

// TestInspectorWithKeyboard corrects, pins, forgets, imports and exports with the
// keyboard, and checks that the next turn through the proxy reflects it.
func TestInspectorWithKeyboard(t *testing.T) {
	t.Parallel()
	w := serve(t)
	saw := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if all := w.model.Requests(); len(all) > 0 {
			_, _ = rw.Write(all[len(all)-1].Body)
		}
	}))
	defer saw.Close()
	inBrowser(t, "flows.mjs", map[string]any{"base": w.admin, "proxy": w.url, "saw": saw.URL})
}
