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

// Call is one of the calls that the service has.
type Call string

// The calls.
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
	maxRequests = 1000     // that are remembered
)

//go:embed openapi.json
var openAPI []byte

// Options configures a Server.
type Options struct {
	// Delay is how long the worker takes for one message.
	Delay time.Duration

	// DelayOf is Delay for a group; nil: Delay, for all of them.
	DelayOf func(group string) time.Duration

	// Raises reports whether the extraction of a message raises an exception, which ends
	// the worker; nil: never. The worker calls it.
	Raises func(group, content string) bool

	// MCP makes the server an MCP server too. There each group has a worker of
	// its own, which goes on after an exception.
	MCP Age

	// Reads returns the fact that the model reads from what somebody said; nil: what
	// they said. The worker calls it.
	Reads func(said string) string

	// Merge makes one fact of messages that say the same.
	Merge bool

	// Deletes says how deletions behave.
	Deletes Deletion

	// OldFacts makes facts that do not say which episodes they are from.
	OldFacts bool
}

// Deletion says how deletions behave.
type Deletion int

// The deletions. Those that delete nothing answer all the same: Elsewhere is
// what Graphiti does on FalkorDB, where it looks into another graph.
const (
	Deleted   Deletion = iota
	OneByOne           // a group stays, single things go
	Elsewhere          // a group stays, single things are not found
	InWords            // all stays, and all answers say that it is gone
)

// Request is a request as it was received.
type Request struct {
	Call          Call
	Path          string // with the query
	Authorization string
	Body          []byte
}

// Counts are numbers of messages since the start, and of calls.
type Counts struct {
	Accepted int // answered with 202
	Kept     int // of those, became an episode
	Calls    map[Call]int
}

// Server is a running stand-in. It is safe for concurrent use.
type Server struct {
	o      Options
	http   *http.Server
	url    string
	served chan struct{}

	mu       sync.Mutex // guards the rest
	worker   *worker
	workers  map[string]*worker // of the MCP server, by group
	mcp      mcpService         // zero: there is none
	episodes map[string][]Episode
	edges    map[string][]*edge
	requests []Request
	accepted int
	kept     int
	calls    map[Call]int
	next     map[Call][]Fault
	always   map[Call]Fault
	blind    Blindness
	broken   string // what the model endpoint says; empty: it works
}

// Start begins to serve on a loopback port of its own.
func Start(o Options) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the stand-in Graphiti: %w", err)
	}
	s := &Server{
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
		path := map[Age]string{Today: "/mcp", Earlier: "/mcp", Old: "/mcp/"}[o.MCP] // the other one is redirected to, or not there
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

func (s *Server) serve(l net.Listener) {
	defer close(s.served)
	_ = s.http.Serve(l) // the error is that it was closed
}

// URL is the base address.
func (s *Server) URL() string { return s.url }

// Close ends the server and its worker, requests under way included.
func (s *Server) Close() error {
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

// Restart does what a restart of the process does: it loses the queue, keeps the episodes,
// and has a new worker.
func (s *Server) Restart() {
	s.endWorkers()
	s.mu.Lock()
	service := s.mcp
	defer func() { s.mu.Unlock(); service.end() }()
	s.worker, s.workers = s.startWorker(), make(map[string]*worker)
	if s.o.MCP != NoMCP { // the sessions are lost too
		s.mcp = s.newMCP(s.o.MCP)
	}
}

func (s *Server) endWorkers() {
	s.current().end()
	s.mu.Lock()
	workers := slices.Collect(maps.Values(s.workers))
	s.mu.Unlock()
	for _, w := range workers {
		w.end()
	}
}

// KillWorker ends the worker as an exception does: nothing else changes.
func (s *Server) KillWorker() { s.current().end() }

// Settle waits until the workers have worked off their queues, or have died.
func (s *Server) Settle(ctx context.Context) error {
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

func (s *Server) current() *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worker
}

// Episodes returns the episodes of a group in the order in which they were kept, including
// those of the future.
func (s *Server) Episodes(group string) []Episode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Episode(nil), s.episodes[group]...)
}

// Requests are the last requests, the newest at the end.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Counts returns the numbers as they are now.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Accepted: s.accepted, Kept: s.kept, Calls: maps.Clone(s.calls)}
}

// received notes a request, and serves it or lets it suffer its fault.
func (s *Server) received(call Call, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// Read first: the server notices that a client left only after that.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			var large *http.MaxBytesError
			if errors.As(err, &large) {
				http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			}
			return
		}
		r.Body = &readBody{*bytes.NewReader(body), body}
		fault := s.note(call, Request{call, r.URL.RequestURI(), r.Header.Get("Authorization"), body})
		if fault == nil {
			serve(w, r)
			return
		}
		fault(w, r, serve)
	}
}

// readBody is a body that was read.
type readBody struct {
	bytes.Reader
	all []byte
}

func (*readBody) Close() error    { return nil }
func (b *readBody) Bytes() []byte { return b.all }

func (s *Server) note(call Call, r Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
	if s.requests = append(s.requests, r); len(s.requests) > maxRequests {
		s.requests = append([]Request(nil), s.requests[1:]...)
	}
	if waiting := s.next[call]; len(waiting) > 0 {
		s.next[call] = waiting[1:]
		return waiting[0]
	}
	return s.always[call]
}
