// Package polltest owns how a test waits for what others bring about: processes,
// sockets, files, goroutines of a whole proxy. Where a channel can be waited for, that
// is better.
//
// It must not be linked into a program, nor know what is waited for.
package polltest

import (
	"testing"
	"time"
)

const (
	// patience is long, since machines are slow. In a bubble of synctest it costs
	// nothing.
	patience = time.Minute

	pause = 5 * time.Millisecond
)

// Until returns when ok holds. The test ends when it does not within a minute.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute in vain for %s", what)
		}
	}
}
