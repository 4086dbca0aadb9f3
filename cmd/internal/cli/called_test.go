package cli

import (
	"strings"
	"testing"
)

// TestCalledAgain: a command that is printed can be run where this one was, also
// after go run, which leaves nothing on the path.
func TestCalledAgain(t *testing.T) {
	t.Parallel()
	const run = "go run ./cmd/graphiti-proxy"
	for program, want := range map[string]string{
		"graphiti-proxy":                                 "graphiti-proxy",
		"./graphiti-proxy":                               "./graphiti-proxy",
		"/opt/my tools/graphiti-proxy":                   `"/opt/my tools/graphiti-proxy"`,
		"/home/josh/go-build/graphiti-proxy":             "/home/josh/go-build/graphiti-proxy",
		"/tmp/go-build524360927/b001/exe/graphiti-proxy": run,
		"/cache/go-build/59/" + strings.Repeat("0a", 32) + "-d/graphiti-proxy": run,
		"/other/59/" + strings.Repeat("0a", 32) + "-d/graphiti-proxy":          run,
	} {
		if got := Called(program); got != want {
			t.Errorf("%s: %s, want %s", program, got, want)
		}
	}
}
