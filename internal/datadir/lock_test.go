package datadir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestWhoHoldsTheLock checks that the error of a held lock names a remedy that fits the
// holder: a command ends by itself, a proxy does not.
func TestWhoHoldsTheLock(t *testing.T) {
	me := fmt.Sprintf("(process %d); ", os.Getpid())
	for holder, want := range map[string]string{Command: me + "wait until it ends", Proxy: me + "stop that one"} {
		dir := t.TempDir()
		l, err := Acquire(dir, holder)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Acquire(dir, Command); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Acquire returns %v, want ErrInUse with %q", holder, err, want)
		}
		if err := l.Unlock(); err != nil {
			t.Error(err)
		}
	}
}
