// Package helptest has functions for the tests of many packages: they end a test at an error,
// and poll for conditions that processes, sockets, files or goroutines of a complete
// proxy cause. Prefer a channel where one exists. Programs must not link it.
package helptest

import (
	"io"
	"net/http"
	"os"
	"testing"
	"time"
)

const (
	// Patience is the deadline of whatever must only not hang. It is long, because
	// machines are slow. In a synctest bubble it costs no time.
	Patience = time.Minute

	pause = 5 * time.Millisecond
)

// Must ends the test if err is not nil.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ErrorOf returns the error of a call whose result a test does not need.
func ErrorOf[T any](_ T, err error) error { return err }

// Until waits for ok to return true, and fails the test after a minute.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("waited a minute in vain for %s", what)
		}
	}
}

// File returns the content of a file.
func File(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	Must(t, err)
	return b
}

// Body reads and closes the body of an answer, unless err ends the test.
func Body(t testing.TB, resp *http.Response, err error) []byte {
	t.Helper()
	Must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	Must(t, err)
	return b
}
