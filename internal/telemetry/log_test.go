package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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

// TestAlways_Level checks that a line of the audit log is written at every level.
func TestAlways_Level(t *testing.T) {
	var b bytes.Buffer
	Always(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelError}))).With("a", 1).Info("audit")
	if !strings.Contains(b.String(), "msg=audit a=1") {
		t.Errorf("the level leaves it out: %q", b.String())
	}
}
