package proxytest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxBody limits a request's body.
const maxBody = 64 << 20

// Received is one received request.
type Received struct {
	Method  string
	Path    string
	Query   string
	Headers http.Header
	Body    []byte
	Refused string        // reason for the rejection, or ""
	Left    chan struct{} // closed when the client disconnects before the answer's end
}

// Faults describes faults in answers. The zero value describes correct answers.
type Faults struct {
	Status     int           // answer with this error
	Delay      time.Duration // before the head
	Pause      time.Duration // before each chunk of a stream
	CutAfter   int           // chunks of a stream, and then the connection breaks
	FailAfter  int           // chunks of a stream, and then an error in the stream
	Hang       bool          // do not answer until the client leaves
	NoDone     bool          // no [DONE] at a stream's end
	Comments   bool          // keep-alive comments between chunks, and CRLF line ends
	SliceBytes int           // write streams in pieces of this size
}

// Provider is a running stand-in.
type Provider struct {
	ln     net.Listener
	server *http.Server

	mu       sync.Mutex // protects the fields below
	requests []*Received
	faults   Faults
	answer   func(Input) Reply
	answers  int
	stored   map[string][]Message // conversations with their answers, by the id of a Responses API answer
}

// Start starts a provider on a free port of the loopback interface.
func Start() (*Provider, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start stand-in provider: %w", err)
	}
	p := &Provider{ln: ln, answer: Recollect}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: 10 * time.Second}
	// Ends with Close.
	go func() { _ = p.server.Serve(ln) }()
	return p, nil
}

// URL returns the provider's base address, without a path.
func (p *Provider) URL() string { return "http://" + p.ln.Addr().String() }

// Close ends the provider and its connections.
func (p *Provider) Close() error { return p.server.Close() }

// SetFaults sets the faults of later answers.
func (p *Provider) SetFaults(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// SetAnswer replaces the built-in model.
func (p *Provider) SetAnswer(f func(Input) Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

// Requests returns all requests so far, in order.
func (p *Provider) Requests() []*Received {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*Received(nil), p.requests...)
}

// Forget discards the recorded requests.
func (p *Provider) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	rec := &Received{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Headers: r.Header.Clone(), Body: body, Left: make(chan struct{})}
	p.mu.Lock()
	p.requests = append(p.requests, rec)
	faults, answer := p.faults, p.answer
	p.mu.Unlock()
	// The server also cancels the context after a complete answer, but only after this
	// function: by then the disconnect detection is stopped.
	left := func() { close(rec.Left) }
	stop := context.AfterFunc(r.Context(), left)
	defer func() {
		if stop() && r.Context().Err() != nil { // the context has ended without calling left
			left()
		}
	}()
	if r.Method == http.MethodGet && r.URL.Path == "/v1/models" {
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
			map[string]any{"id": "stand-in", "object": "model", "created": 1700000000, "owned_by": "proxytest"},
		}})
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/v1beta/models" {
		writeJSON(w, http.StatusOK, map[string]any{"models": []any{map[string]any{"name": "models/stand-in", "displayName": "Stand-in"}}})
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/v1/responses" && r.Header.Get("Upgrade") != "" {
		p.socket(w, r, rec, answer)
		return
	}
	api, ok := apis[r.Method+" "+r.URL.Path]
	if r.Method == http.MethodPost && geminiMethod(r.URL.Path) != "" {
		api, ok = (*Provider).gemini, true
	}
	switch {
	case !ok:
		refuse(w, rec, http.StatusNotFound, "Unknown request URL: "+r.Method+" "+r.URL.Path)
		return
	case faults.Hang:
		<-r.Context().Done()
		return
	}
	time.Sleep(faults.Delay)
	if faults.Status != 0 {
		refuse(w, rec, faults.Status, "a fault was asked for")
		return
	}
	api(p, w, r, rec, faults, answer)
}

// apis are the APIs of the provider, by path.
var apis = map[string]func(*Provider, http.ResponseWriter, *http.Request, *Received, Faults, func(Input) Reply){
	"POST /v1/chat/completions":       (*Provider).chat,
	"POST /v1/responses":              (*Provider).responses,
	"POST /v1/responses/input_tokens": (*Provider).responses,
	"POST /v1/messages":               (*Provider).messages,
	"POST /v1/messages/count_tokens":  (*Provider).messages,
}

// unknown rejects members of a JSON object that are not allowed.
func unknown(object []byte, where string, allowed []string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return "We could not parse the JSON body of your request. " + where
	}
	for name := range members {
		if !slices.Contains(allowed, name) {
			return "Unrecognized request argument supplied: " + where + name
		}
	}
	return ""
}

// refuse answers with an error in the API's shape.
func refuse(w http.ResponseWriter, rec *Received, status int, message string) {
	rec.Refused = message
	if ofGoogle(rec.Path) {
		writeJSON(w, status, googleError(status, message))
		return
	}
	writeJSON(w, status, map[string]any{"error": map[string]any{
		"message": message, "type": "invalid_request_error", "param": nil, "code": nil,
	}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client disconnected
}
