package graphititest

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Fault answers a request in place of the service. serve is what the service
// would have done.
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

// Blindness is what a server does not show of what it keeps.
type Blindness int

// What is not shown: nothing is hidden, listings are empty though searches are
// not (an MCP server on FalkorDB), or both are empty.
const (
	Sees Blindness = iota
	BlindListing
	BlindAll
)

// Blind has the server not show what it keeps.
func (s *Server) Blind(b Blindness) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blind = b
}

// BreakModel has the model endpoint fail with a text, and work again when it is
// empty: messages are not kept, and searches fail.
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
func Hang() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.HandlerFunc) { <-r.Context().Done() }
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

// Garbage answers 200 with what is not JSON; nothing is stored.
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

// FailedButStored does what was asked, and answers 500.
func FailedButStored() Fault {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(unheard{}, r)
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
	}
}

// AcceptedButLost answers 202; nothing is stored.
func AcceptedButLost() Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { accepted(w) }
}

// unheard is where an answer goes that nobody gets.
type unheard struct{}

func (unheard) Header() http.Header         { return make(http.Header) }
func (unheard) Write(b []byte) (int, error) { return len(b), nil }
func (unheard) WriteHeader(int)             {}
