package cli

import (
	"path/filepath"
	"regexp"
	"strings"
)

// goRun is where go run puts what it builds: a temporary directory, and from the
// second time on the build cache.
var goRun = regexp.MustCompile(`/(go-build\d+/b\d+/exe|[0-9a-f]{2}/[0-9a-f]{64}-d)/[^/]+$`)

// Called returns how a person calls this program again: by program, or by go run if go
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
