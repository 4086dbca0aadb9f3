package graphititest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Call is an endpoint of the service or a tool.
type Call string

// The endpoints.
const (
	Healthcheck Call = "GET /healthcheck"
	OpenAPI     Call = "GET /openapi.json"
	Messages    Call = "POST /messages"
	Search      Call = "POST /search"
	GetMemory   Call = "POST /get-memory"
	Episodes    Call = "GET /episodes/{group_id}"
	Forget      Call = "DELETE /group/{group_id}"
	DropEpisode Call = "DELETE /episode/{uuid}"
	ShowEdge    Call = "GET /entity-edge/{uuid}"
	DropEdge    Call = "DELETE /entity-edge/{uuid}"
)

const (
	maxBody     = 16 << 20 // of a request
	maxRequests = 1000     // in Requests
)

//go:embed openapi.json
var openAPI []byte

// Options configures a Server.
type Options struct {
	// Delay is the time that the worker takes for one message.
	Delay time.Duration

	// DelayOf returns the delay for a group. If it is nil, Delay applies to all groups.
	DelayOf func(group string) time.Duration

	// Raises reports whether the extraction of a message raises an exception, which ends
	// the worker. It may be nil. The worker calls it.
	Raises func(group, content string) bool

	// MCP makes the server an MCP server too. Each group of an MCP server has its own
	// worker, which survives exceptions.
	MCP Age

	// Reads returns the fact that the model extracts from a text. If it is nil, the fact is
	// the text. The worker calls it.
	Reads func(said string) string

	// Merge makes messages with the same fact share it.
	Merge bool

	// Deletes is the behavior of deletions.
	Deletes Deletion

	// OldFacts omits the episodes of facts in answers.
	OldFacts bool
}

// Deletion is a behavior of deletions.
type Deletion int

// The behaviors of deletions. Elsewhere is that of Graphiti on FalkorDB, which searches
// another graph. The deletion of a group always reports success.
const (
	Deleted   Deletion = iota
	Elsewhere          // a group stays; single messages and facts are not found
	InWords            // everything stays, but all answers report success
)

// Received is a received request.
type Received struct {
	Call          Call
	Path          string // with the query
	Authorization string
	Body          []byte
}

// Counts contains the numbers of messages and calls since the start.
type Counts struct {
	Accepted int // messages accepted
	Kept     int // messages stored as episodes
	Calls    map[Call]int
}

// Graphiti is a running stand-in for the service. It is safe for concurrent use.
type Graphiti struct {
	o      Options
	http   *http.Server
	url    string
	served chan struct{}

	mu       sync.Mutex // protects the fields below
	worker   *worker
	workers  map[string]*worker // of the MCP server, by group
	mcp      mcpService         // zero without MCP
	episodes map[string][]Episode
	edges    map[string][]*edge
	requests []Received
	accepted int
	kept     int
	calls    map[Call]int
	next     map[Call][]Fault
	always   map[Call]Fault
	broken   string // error of the model endpoint, or "" if it works
}

// Start starts a server on its own loopback port.
func Start(o Options) (*Graphiti, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the stand-in Graphiti: %w", err)
	}
	s := &Graphiti{
		o: o, url: "http://" + l.Addr().String(), served: make(chan struct{}),
		workers: make(map[string]*worker), episodes: make(map[string][]Episode), edges: make(map[string][]*edge), calls: make(map[Call]int),
		next: make(map[Call][]Fault), always: make(map[Call]Fault),
	}
	mux := http.NewServeMux()
	for call, h := range map[Call]http.HandlerFunc{
		Healthcheck: s.healthcheck, OpenAPI: s.openAPI, Messages: s.messages,
		Search: s.search, GetMemory: s.getMemory, Episodes: s.listEpisodes, Forget: s.forget,
		DropEpisode: s.dropEpisode, ShowEdge: s.showEdge, DropEdge: s.dropEdge,
	} {
		mux.Handle(string(call), s.received(call, h))
	}
	if o.MCP != NoMCP {
		s.mcp = s.newMCP(o.MCP)
		path := map[Age]string{Today: "/mcp", Earlier: "/mcp", Old: "/mcp/"}[o.MCP] // the other path redirects or does not exist
		mux.HandleFunc(path, s.serveMCP)
		if o.MCP != Old {
			mux.HandleFunc("GET /health", s.healthcheck)
		}
	}
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.worker = s.startWorker()
	// Ends when Close closes the listener.
	go s.serve(l)
	return s, nil
}

func (s *Graphiti) serve(l net.Listener) {
	defer close(s.served)
	_ = s.http.Serve(l) // always returns an error after Close
}

// URL returns the base URL.
func (s *Graphiti) URL() string { return s.url }

// Close ends the server, its workers and all running requests.
func (s *Graphiti) Close() error {
	err := s.http.Close()
	<-s.served
	s.mu.Lock()
	service := s.mcp
	s.mu.Unlock()
	service.end()
	s.endWorkers()
	if err != nil {
		return fmt.Errorf("close the stand-in Graphiti: %w", err)
	}
	return nil
}

// Restart simulates a restart of the process: the queues are lost, the episodes stay, and
// the workers are new.
func (s *Graphiti) Restart() {
	s.endWorkers()
	s.mu.Lock()
	service := s.mcp
	defer func() { s.mu.Unlock(); service.end() }()
	s.worker, s.workers = s.startWorker(), make(map[string]*worker)
	if s.o.MCP != NoMCP { // the sessions are lost too
		s.mcp = s.newMCP(s.o.MCP)
	}
}

func (s *Graphiti) endWorkers() {
	s.current().end()
	s.mu.Lock()
	workers := slices.Collect(maps.Values(s.workers))
	s.mu.Unlock()
	for _, w := range workers {
		w.end()
	}
}

// KillWorker ends the worker like an exception. Nothing else changes.
func (s *Graphiti) KillWorker() { s.current().end() }

// Settle waits until each worker has processed its queue or is dead.
func (s *Graphiti) Settle(ctx context.Context) error {
	s.mu.Lock()
	workers := append(slices.Collect(maps.Values(s.workers)), s.worker)
	s.mu.Unlock()
	for _, w := range workers {
		if err := w.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Graphiti) current() *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worker
}

// Episodes returns the episodes of a group in the order of their storage, including those of
// the future.
func (s *Graphiti) Episodes(group string) []Episode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Episode(nil), s.episodes[group]...)
}

// Requests returns the last requests, oldest first.
func (s *Graphiti) Requests() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Received(nil), s.requests...)
}

// Counts returns the current numbers.
func (s *Graphiti) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Accepted: s.accepted, Kept: s.kept, Calls: maps.Clone(s.calls)}
}

// received records a request, and serves it or applies its fault.
func (s *Graphiti) received(call Call, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// Read the body first: only then does the server detect that the client is gone.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			var large *http.MaxBytesError
			if errors.As(err, &large) {
				http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			}
			return
		}
		r.Body = &readBody{*bytes.NewReader(body), body}
		fault := s.note(call, Received{call, r.URL.RequestURI(), r.Header.Get("Authorization"), body})
		if fault == nil {
			serve(w, r)
			return
		}
		fault(w, r, serve)
	}
}

// readBody is a request body in RAM.
type readBody struct {
	bytes.Reader
	all []byte
}

func (*readBody) Close() error    { return nil }
func (b *readBody) Bytes() []byte { return b.all }

func (s *Graphiti) note(call Call, r Received) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
	if s.requests = append(s.requests, r); len(s.requests) > maxRequests {
		s.requests = append([]Received(nil), s.requests[1:]...)
	}
	if waiting := s.next[call]; len(waiting) > 0 {
		s.next[call] = waiting[1:]
		return waiting[0]
	}
	return s.always[call]
}
