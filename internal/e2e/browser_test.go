//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// page is a page of the inspector.
type page struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// inBrowser runs a script of the folder browser with Chromium. Each check that it prints
// is a test of its own.
func inBrowser(t *testing.T, script string, input any) {
	t.Helper()
	if _, err := os.Stat(".cache/browser/node_modules/playwright-core"); err != nil {
		t.Skip("SKIPPED LOUDLY: playwright-core is not installed; run internal/e2e/install.sh where npm's registry is reached")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("SKIPPED LOUDLY: Chromium is not installed; run internal/e2e/packages.sh as root on Debian")
	}
	in, err := json.Marshal(input)
	must(t, err)
	path, err := filepath.Abs(filepath.Join("browser", script))
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", path)
	cmd.Dir, cmd.Stdin, cmd.Stderr, cmd.WaitDelay = ".cache/browser", bytes.NewReader(in), os.Stderr, 10*time.Second
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	checks := 0
	for s := bufio.NewScanner(out); s.Scan(); checks++ {
		var found struct {
			Name         string
			Problems     []string
			Paint, Bytes int
		}
		if err := json.Unmarshal(s.Bytes(), &found); err != nil {
			t.Errorf("%s printed %q", script, s.Text())
			continue
		}
		t.Run(found.Name, func(t *testing.T) {
			if found.Bytes > 0 {
				t.Logf("first paint after %d ms, %d bytes", found.Paint, found.Bytes)
			}
			if len(found.Problems) > 0 {
				t.Error(strings.Join(found.Problems, "\n"))
			}
		})
	}
	if err := cmd.Wait(); err != nil || checks == 0 {
		t.Errorf("%s: %v, after %d checks", script, err, checks)
	}
}
