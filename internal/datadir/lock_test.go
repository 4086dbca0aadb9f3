package datadir

import (
	"errors"
	"strings"
	"testing"
)

// TestWhoHoldsTheLock checks that the error of a held lock names a remedy that fits the
// holder: a command ends by itself, a proxy does not.
func TestWhoHoldsTheLock(t *testing.T) {
	for holder, want := range map[string]string{Command: "wait until it ends", Proxy: "stop that one"} {
		dir := t.TempDir()
		l, err := Acquire(dir, holder)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Acquire(dir, Command); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Acquire returns %v, want ErrInUse with %q", holder, err, want)
		}
		if h := LockHolder(dir); h.PID == 0 || h.Command != (holder == Command) || h.Admin != "" {
			t.Errorf("%s: LockHolder returns %+v, want this process without an address", holder, h)
		}
		if holder == Proxy {
			l.Serving("127.0.0.1:1")
			if h := LockHolder(dir); h.Admin != "127.0.0.1:1" || h.Command {
				t.Errorf("LockHolder returns %+v, want a proxy at 127.0.0.1:1", h)
			}
		}
		if err := l.Unlock(); err != nil {
			t.Error(err)
		}
	}
}
