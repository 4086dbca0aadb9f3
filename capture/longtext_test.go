package capture

import (
	"fmt"
	"strings"
	"testing"
)

// TestWithoutLikeLines: of lines of one shape only the first stay, and the line that is
// unlike them is not lost.
func TestWithoutLikeLines(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 200 {
		fmt.Fprintf(&log, "2026-11-18T03:%02d:%02dZ INFO worker-%d batch=%d took=%dms\n", i/60, i%60, i%8, 9000+i, i)
		if i == 100 {
			log.WriteString("2026-11-18T03:01:40Z ERROR quota of bucket acme-exports exceeded\n")
		}
	}
	got := withoutLikeLines("What is odd here?\n\n" + log.String() + "\nThe pager of Ibex is 5512.")
	for _, want := range []string{"What is odd here?\n\n", "INFO worker-0 batch=9000", "quota of bucket acme-exports exceeded\n", "\nThe pager of Ibex is 5512."} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if lines := strings.Count(got, "\n"); lines > 12 {
		t.Errorf("got %d lines, want the like ones dropped", lines)
	}
	const prose = "One line.\nAnother line here.\n\n\n\nA third.\n"
	if got := withoutLikeLines(prose); got != prose {
		t.Errorf("got %q, want %q", got, prose)
	}
}
