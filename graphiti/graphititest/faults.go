package graphititest

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Fault answers a request in place of the service. serve answers as the service would.
type Fault func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)

// Next gives the next requests of a call their faults, one each, in order. A
// nil Fault is a request that is served.
func (s *Server) Next(c Call, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[c] = append(s.next[c], faults...)
}

// Always gives all requests of a call a fault, until it is set to nil.
func (s *Server) Always(c Call, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always[c] = f
}

// Blindness says what a server hides of what it keeps.
type Blindness int

// What is not shown: nothing is hidden, listings are empty though searches are
// not (an older MCP server on FalkorDB), or both are empty.
const (
	Sees Blindness = iota
	BlindListing
	BlindAll
)

// Blind makes the server hide what it keeps.
func (s *Server) Blind(b Blindness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blind = b
}

// BreakModel makes the model endpoint fail with a text, or work again when it is empty.
// While it fails, messages are not kept, and searches fail.
func (s *Server) BreakModel(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = text
}

func (s *Server) sight() (b Blindness, broken string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blind, s.broken
}

// Refuse closes the connection without an answer; nothing is stored.
func Refuse() Fault {
	return func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) }
}

// Hang never answers; nothing is stored.
func Hang() Fault { return HangUntil(nil) }

// HangUntil serves the request once released is closed. A request that its client gives
// up before stores nothing.
func HangUntil(released <-chan struct{}) Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		select {
		case <-r.Context().Done():
		case <-released:
			serve(w, r)
		}
	}
}

// Slow answers after a while.
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

// Answer answers with a status and, where it is not empty, a Retry-After;
// nothing is stored.
func Answer(status int, retryAfter string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		writeJSON(w, status, map[string]any{"detail": http.StatusText(status)})
	}
}

// Garbage answers 200 with a body that is not JSON; nothing is stored.
func Garbage() Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		_, _ = io.WriteString(w, "<html>\xff it works!")
	}
}

// Huge answers 200 with a fact of that many bytes.
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

// FailedButStored serves the request, but answers 500.
func FailedButStored() Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(discarded{}, r)
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
	}
}

// AcceptedButLost answers 202; nothing is stored.
func AcceptedButLost() Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { accepted(w) }
}

// discarded takes an answer that nobody gets.
type discarded struct{}

func (discarded) Header() http.Header         { return make(http.Header) }
func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) WriteHeader(int)             {}
