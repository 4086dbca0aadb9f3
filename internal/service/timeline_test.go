package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// TestTimelineGoesBack checks that Show pages back through all messages, each once,
// whatever their order of arrival, and even if several have the same time.
func TestTimelineGoesBack(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		if strings.HasSuffix(t.Name(), "mcp") {
			t.Skip("it dates a message by its arrival")
		}
		now := time.Now().UTC().Truncate(time.Second)
		for i, ago := range []time.Duration{time.Minute, 3 * time.Hour, 2 * time.Hour, 2 * time.Hour, 2 * time.Hour, 48 * time.Hour} { // as in an import, old messages arrive last
			one := turn(strings.Repeat(string(rune('a'+i)), 32), "s", fmt.Sprintf("My cat is called Miso, number %d", i), "")
			one.Said, one.Answered = now.Add(-ago), now.Add(-ago)
			add(t, m, settle, one)
		}
		var pages []string
		for before := now.Format(time.RFC3339); before != ""; {
			page := run(t, m, service.Show, service.ShowRequest{Last: 2, Before: before})
			var numbers []string
			for _, r := range page.Messages {
				if r.Role == "user" {
					numbers = append(numbers, r.Text[len(r.Text)-1:])
				}
			}
			pages, before = append(pages, strings.Join(numbers, "")), page.Earlier
			if len(pages) > 10 {
				t.Fatal("it does not end")
			}
		}
		if got := strings.Join(pages, " "); got != "2340 51" {
			t.Errorf("pages: %q", got)
		}
		if page := run(t, m, service.Show, service.ShowRequest{Last: 50, Before: "2020-01-01T00:00:00Z"}); len(page.Messages) > 0 || page.Earlier != "" {
			t.Errorf("before anything was said: %+v", page)
		}
		if page := run(t, m, service.Show, service.ShowRequest{Last: 50}); len(page.Messages) != 6 || page.Earlier != "" {
			t.Errorf("all: %d messages, earlier %q", len(page.Messages), page.Earlier)
		}
		var numbers, earlier string
		for before := ""; len(numbers) < 20; before = earlier {
			page := run(t, m, service.Show, service.ShowRequest{Last: 2, Before: before})
			for _, r := range slices.Backward(page.Messages) {
				if n := r.Text[len(r.Text)-1:]; r.Role == "user" && !strings.Contains(numbers, n) { // a moment may be on two pages
					numbers += n
				}
			}
			if earlier = page.Earlier; earlier == "" {
				break
			}
		}
		if len(numbers) != 6 || numbers[:1] != "0" || numbers[4:] != "15" {
			t.Errorf("from the last page on: %q, want the six messages by time", numbers)
		}
	})
}
