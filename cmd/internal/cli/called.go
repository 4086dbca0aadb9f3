package cli

import (
	"path/filepath"
	"regexp"
	"strings"
)

// goRun matches the paths of programs that go run builds: in a temporary directory, and
// from the second run on in the build cache.
var goRun = regexp.MustCompile(`/(go-build\d+/b\d+/exe|[0-9a-f]{2}/[0-9a-f]{64}-d)/[^/]+$`)

// Called returns the command line that runs this program again: program, or go run if go
// run built it.
func Called(program string) string {
	switch {
	case goRun.MatchString(filepath.ToSlash(program)):
		return "go run ./cmd/graphiti-proxy"
	case strings.Contains(program, " "):
		return `"` + program + `"`
	}
	return program
}
