//go:build e2e

package e2e

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines collects a process's output. It may be read while the process runs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// until waits until the output holds a text.
func (l *lines) until(t *testing.T, says string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(l.String(), says); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q is not printed:\n%s", says, l.String())
		}
	}
}
