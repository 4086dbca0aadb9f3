//go:build unix

package postgrestest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const onPostgres = "TEST_ON_POSTGRES"

var (
	again   = make(map[string]bool) // names of tests that run again
	againMu sync.Mutex
)

// Chosen reports whether a test of files uses Postgres instead, as in the process that Again
// starts.
func Chosen(t testing.TB) bool {
	if os.Getenv(onPostgres) != "" {
		return true
	}
	if name, _, _ := strings.Cut(t.Name(), "/"); strings.HasPrefix(name, "Test") {
		againMu.Lock()
		defer againMu.Unlock()
		again[name] = true
	}
	return false
}

// Again runs the tests that have called Chosen in another process, on Postgres. TestMain calls it
// with the exit code of its tests, and ends with the result.
func Again(code int) int {
	if code != 0 || len(again) == 0 {
		return code
	}
	var names []string
	for name := range again {
		names = append(names, name)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^("+strings.Join(names, "|")+")$", "-test.timeout=5m") // #nosec G204
	cmd.Env = append(os.Environ(), onPostgres+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Printf("on Postgres: %v\n%s", err, out)
		return 1
	}
	return 0
}
