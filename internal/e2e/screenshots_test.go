//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestScreenshots makes the pictures in docs/images/inspector from testdata/invented.yaml,
// when SCREENSHOTS=1 asks for them.
func TestScreenshots(t *testing.T) {
	if os.Getenv("SCREENSHOTS") == "" {
		t.Skip("SCREENSHOTS=1 makes them")
	}
	all := readInvented(t)
	w := serveWith(t, buildForOtherTimes(t), at(all.when(t, &all.Conversations[0])))
	for i := range all.Conversations {
		c := &all.Conversations[i]
		w.stop(t)
		w.start(t, at(all.when(t, c)))
		w.hold(t, c)
	}
	if dir := os.Getenv("SCREENSHOTS_KEEP"); dir != "" {
		w.stop(t)
		if err := os.CopyFS(dir, os.DirFS(w.dir)); err != nil {
			t.Fatal(err)
		}
	}
}

// buildForOtherTimes builds the binary with a clock that is off by TIME_SHIFT seconds, so
// that weeks pass in seconds and pictures have the same dates whenever they are made.
func buildForOtherTimes(t *testing.T) string {
	t.Helper()
	const is, to = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {", "	sec, nsec, mono := runtimeNow()\n	sec += shift\n	if mono == 0 {"
	folder, dir := filepath.Join(runtime.GOROOT(), "src", "time"), t.TempDir()
	clock := read(t, filepath.Join(folder, "time.go"))
	if strings.Count(clock, is) != 1 {
		t.Fatalf("Go %s has another clock than this test knows", runtime.Version())
	}
	write(t, strings.Replace(clock, is, to, 1), dir, "time.go")
	write(t, `package time

import "syscall"

// shift is an int64, written without a sign.
var shift = func() (sec int64) {
	s, _ := syscall.Getenv("TIME_SHIFT")
	for _, digit := range []byte(s) {
		sec = 10*sec + int64(digit-'0')
	}
	return sec
}()
`, dir, "shift.go")
	replace := map[string]string{}
	for _, name := range []string{"time.go", "shift.go"} {
		replace[filepath.Join(folder, name)] = filepath.Join(dir, name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(overlay), dir, "overlay.json")
	out := filepath.Join(dir, "graphiti-proxy")
	cmd := exec.Command("go", "build", "-tags", "grpcnotrace", "-overlay", filepath.Join(dir, "overlay.json"), "-o", out, "../../cmd/graphiti-proxy")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// at is the environment in which it is another time for that binary.
func at(when time.Time) string {
	return "TIME_SHIFT=" + strconv.FormatUint(uint64(time.Until(when)/time.Second), 10)
}
