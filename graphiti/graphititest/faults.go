package graphititest

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Fault answers a request instead of the service. serve is the service's own answer.
type Fault func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)

// Next sets the faults of the next requests of a call, in order. The service itself answers
// a request with a nil Fault.
func (s *Graphiti) Next(c Call, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[c] = append(s.next[c], faults...)
}

// Always sets the fault of all requests of a call; nil ends it.
func (s *Graphiti) Always(c Call, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always[c] = f
}

// BreakModel makes the model endpoint fail with a text, or work again if the text is empty.
// While it fails, each message raises an exception, and /search and the tools that search
// facts fail.
func (s *Graphiti) BreakModel(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = text
}

// brokenModel returns the text of BreakModel.
func (s *Graphiti) brokenModel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// Refuse closes the connection without an answer and without storing anything.
func Refuse() Fault {
	return func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) }
}

// Hang never answers or stores anything.
func Hang() Fault { return HangUntil(nil) }

// HangUntil serves the request once released is closed, unless its client gives up earlier.
func HangUntil(released <-chan struct{}) Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		select {
		case <-r.Context().Done():
		case <-released:
			serve(w, r)
		}
	}
}

// Slow delays the answer.
func Slow(d time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			serve(w, r)
		case <-r.Context().Done():
		}
	}
}

// Answer answers with a status and, unless it is empty, a Retry-After, without storing
// anything.
func Answer(status int, retryAfter string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		writeJSON(w, status, map[string]any{"detail": http.StatusText(status)})
	}
}

// Garbage answers 200 with a body that is not JSON, without storing anything.
func Garbage() Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		_, _ = io.WriteString(w, "<html>\xff it works!")
	}
}

// Huge answers 200 with a fact of at least this number of bytes.
func Huge(bytes int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, `{"facts":[{"uuid":"u","name":"n","fact":"`)
		chunk := strings.Repeat("x", 64<<10)
		for left := bytes; left > 0 && err == nil; left -= len(chunk) {
			_, err = io.WriteString(w, chunk[:min(left, len(chunk))])
		}
		_, _ = io.WriteString(w, `"}]}`)
	}
}

// FailedButStored serves the request but answers 500.
func FailedButStored() Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(discarded{}, r)
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
	}
}

// AcceptedButLost answers 202 without storing anything.
func AcceptedButLost() Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { accepted(w) }
}

// discarded is a ResponseWriter that discards the answer.
type discarded struct{}

func (discarded) Header() http.Header         { return make(http.Header) }
func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) WriteHeader(int)             {}
