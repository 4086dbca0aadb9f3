package telemetry

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRequestLines_Together: they are written within flushAfter, in the order of the log, and
// at once if they are many, at another line, and at the end.
func TestRequestLines_Together(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "log")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		log, flush := NewLogger(f, "auto", slog.LevelInfo)
		want := 0
		check := func(when string) {
			t.Helper()
			b, err := os.ReadFile(path)
			if got := strings.Count(string(b), "\n"); err != nil || got != want {
				t.Errorf("%s the log has %d lines, %v; want %d", when, got, err, want)
			}
		}
		log.Info(requestLine)
		check("at once")
		time.Sleep(flushAfter + 1)
		want = 1
		check("after a moment")
		log.Info(requestLine)
		log.Info("other")
		want = 3
		check("after another line")
		long := strings.Repeat("x", flushBytes)
		log.Info(requestLine, "long", long)
		want = 4
		check("after many bytes")
		log.With("a", 1).WithGroup("g").Info(requestLine)
		flush()
		want = 5
		check("at the end")
	})
}

// TestWarningsAreLoggedOnceAMinute, and counted; other levels always.
func TestWarningsAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := Quiet(slog.New(slog.NewTextHandler(&b, nil)))
		for range 5 {
			log.Warn("redis is down")
			log.Info("a turn")
		}
		log.With("a", 1).Warn("redis is down")
		log.Warn("the disk is full")
		if out := b.String(); strings.Count(out, "redis is down") != 1 || strings.Count(out, "disk is full") != 1 || strings.Count(out, "a turn") != 5 {
			t.Errorf("got log %s, want each warning once and every other line", out)
		}
		time.Sleep(2 * quietFor)
		b.Reset()
		log.Warn("redis is down")
		if out := b.String(); !strings.Contains(out, "not_logged_before=5") {
			t.Errorf("got log %s, want not_logged_before=5 in it", out)
		}
	})
}
