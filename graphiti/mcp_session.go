package graphiti

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpTool is the names of one tool, today's first.
type mcpTool []string

// toolSet is what a server offers: tools, and the arguments that each takes.
type toolSet map[string]map[string]bool

func (s toolSet) find(t mcpTool) (name string, takes map[string]bool, err error) {
	for _, name := range t {
		if takes, ok := s[name]; ok {
			return name, takes, nil
		}
	}
	return "", nil, fmt.Errorf("the MCP server has no tool %s", strings.Join(t, " or "))
}

// mcpSession is a session with an MCP server: begun when it is needed, and
// anew when the server does not know it any more. It is safe for concurrent
// use.
type mcpSession struct {
	endpoints []string // addresses to try
	healthURL string
	shown     string
	http      *http.Client
	client    *mcp.Client

	// turn holds the session for whoever may change it; others wait.
	turn chan mcpState
}

// mcpState is a session that is open; the zero state is none.
type mcpState struct {
	session *mcp.ClientSession
	tools   toolSet
	closed  bool
}

func newMCPSession(o MCPOptions) (*mcpSession, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the memory's endpoint is not an http:// or https:// address")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the memory's endpoint must end with its path")
	}
	base := *u
	u.Path = strings.TrimSuffix(u.Path, "/")
	if u.Path == "" {
		u.Path = "/mcp"
	}
	base.Path = strings.TrimSuffix(u.Path, "/mcp") + "/health"
	shown := *u
	shown.User = nil
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
	t.MaxIdleConnsPerHost, t.MaxConnsPerHost = 16, 64
	t.MaxResponseHeaderBytes = 64 << 10
	s := &mcpSession{
		endpoints: []string{u.String(), u.String() + "/"}, healthURL: base.String(), shown: shown.String(),
		http: &http.Client{
			Transport: &mcpTransport{t, o.APIKey},
			// A redirect could carry a conversation to where nobody agreed to.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		client: mcp.NewClient(&mcp.Implementation{Name: "graphiti-proxy", Version: "1"}, nil),
		turn:   make(chan mcpState, 1),
	}
	s.turn <- mcpState{}
	return s, nil
}

// tools lists what the server offers, in the session that is open or a new one.
func (s *mcpSession) tools(ctx context.Context) (toolSet, error) {
	st, err := s.open(ctx)
	return st.tools, err
}

// open returns the session, begun if there is none.
func (s *mcpSession) open(ctx context.Context) (st mcpState, err error) {
	select {
	case st = <-s.turn:
	case <-ctx.Done():
		return st, ctx.Err()
	}
	defer func() { s.turn <- st }()
	switch {
	case st.closed:
		return st, errors.New("the memory is closed")
	case st.session != nil:
		return st, nil
	}
	st, err = s.begin(ctx)
	return st, err
}

// begin opens a session and asks for the tools. Which of the two addresses a
// server has depends on its age.
func (s *mcpSession) begin(ctx context.Context) (st mcpState, err error) {
	for _, endpoint := range s.endpoints {
		transport := &mcp.StreamableClientTransport{
			Endpoint: endpoint, HTTPClient: s.http, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxMCPAnswer,
		}
		if st.session, err = s.client.Connect(ctx, transport, nil); err == nil {
			break
		}
		var status *StatusError
		if !errors.As(err, &status) || status.Code != http.StatusNotFound && status.Code/100 != 3 {
			return mcpState{}, outer(ctx, err)
		}
	}
	if err != nil {
		return mcpState{}, outer(ctx, err)
	}
	st.tools = make(toolSet)
	for tool, err := range st.session.Tools(ctx, nil) {
		if err != nil {
			_ = st.session.Close()
			return mcpState{}, outer(ctx, err)
		}
		var schema struct{ Properties map[string]any }
		b, _ := json.Marshal(tool.InputSchema) // came as JSON
		_ = json.Unmarshal(b, &schema)         // a schema that cannot be read takes nothing
		takes := make(map[string]bool, len(schema.Properties))
		for name := range schema.Properties {
			takes[name] = true
		}
		st.tools[tool.Name] = takes
	}
	return st, nil
}

// drop ends a session that has failed, if it is still the one in use.
func (s *mcpSession) drop(session *mcp.ClientSession) {
	st := <-s.turn
	if st.session == session {
		st = mcpState{closed: st.closed}
	} else {
		session = nil
	}
	s.turn <- st
	if session != nil {
		_ = session.Close()
	}
}

// call calls a tool and reads its answer into out, which may be nil, or a
// *[]byte that gets it as it is. A session that the server does not know, or
// whose connection has broken, is begun anew, and the call repeated once if it
// had no effect.
func (s *mcpSession) call(ctx context.Context, tool string, args map[string]any, out any) error {
	for again := true; ; again = false {
		st, err := s.open(ctx)
		if err != nil {
			return err
		}
		r, err := st.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err == nil {
			return readResult(r, out)
		}
		if ctx.Err() == nil {
			s.drop(st.session)
		}
		if !again || !errors.Is(err, mcp.ErrSessionMissing) {
			return outer(ctx, err)
		}
	}
}

// outer leaves of an error what is not the server's own words.
func outer(ctx context.Context, err error) error {
	var status *StatusError
	var to *url.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &status):
		return status
	case errors.As(err, &to):
		return fmt.Errorf("call the MCP server: %w", to.Err)
	case errors.Is(err, mcp.ErrSessionMissing), errors.Is(err, mcp.ErrConnectionClosed):
		return fmt.Errorf("call the MCP server: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("call the MCP server: %w", errNotGraphiti)
}

// readResult reads what a tool answered: JSON in its text, and in newer
// servers also beside it. A tool says that something failed in either of two
// ways.
func readResult(r *mcp.CallToolResult, out any) error {
	text := ""
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	if r.IsError { // it does not take these arguments
		return &StatusError{Code: http.StatusUnprocessableEntity, Detail: cutBytes(text, maxDetailBytes)}
	}
	b := []byte(text)
	if !json.Valid(b) || len(b) == 0 {
		structured, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return errNotGraphiti
		}
		b = structured
		var wrapped struct{ Result json.RawMessage }
		if json.Unmarshal(b, &wrapped) == nil && wrapped.Result != nil {
			b = wrapped.Result
		}
	}
	var failed struct{ Error string }
	if json.Unmarshal(b, &failed) == nil && failed.Error != "" {
		code := http.StatusServiceUnavailable
		if strings.HasPrefix(failed.Error, "Invalid ") {
			code = http.StatusUnprocessableEntity
		}
		return &StatusError{Code: code, Detail: cutBytes(failed.Error, maxDetailBytes)}
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = b
		return nil
	}
	if out != nil && json.Unmarshal(b, out) != nil {
		return errNotGraphiti
	}
	return nil
}

// episodesIn reads a list of episodes, bare or as the member of an object.
func episodesIn(b []byte) (list []restEpisode, err error) {
	if json.Unmarshal(b, &list) == nil {
		return list, nil
	}
	var answer struct{ Episodes *[]restEpisode }
	if json.Unmarshal(b, &answer) != nil || answer.Episodes == nil {
		var message struct{ Message string }
		if json.Unmarshal(b, &message) == nil && message.Message != "" { // "No episodes found for group"
			return nil, nil
		}
		return nil, errNotGraphiti
	}
	return *answer.Episodes, nil
}

// health asks for the server's health, which has no part in the session.
func (s *mcpSession) health(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.healthURL, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return outer(ctx, err)
	}
	return resp.Body.Close()
}

// farewell bounds how long a server may take to be told that a session ends.
const farewell = 2 * time.Second

// close ends the session. A server that does not answer is not waited for.
func (s *mcpSession) close() error {
	over := time.NewTimer(farewell)
	defer over.Stop()
	var st mcpState
	select {
	case st = <-s.turn:
		s.turn <- mcpState{closed: true}
	case <-over.C:
		return nil
	}
	if st.session == nil {
		return nil
	}
	done := make(chan error, 1)
	// Ends when the server answers, or the process ends.
	go func() { done <- st.session.Close() }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("close the MCP session: %w", err)
		}
		return nil
	case <-over.C:
		return nil
	}
}

// mcpTransport makes errors of answers that are none, and bounds the others.
type mcpTransport struct {
	base *http.Transport
	key  string
}

// RoundTrip implements http.RoundTripper.
func (t *mcpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.key)
	}
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Client wraps it
	}
	missing := resp.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != ""
	if resp.StatusCode/100 != 2 && !missing && r.Method != http.MethodDelete {
		detail, _ := io.ReadAll(io.LimitReader(resp.Body, maxDetailBytes))
		_ = resp.Body.Close()
		return nil, &StatusError{Code: resp.StatusCode, RetryAfter: retryAfter(resp.Header), Detail: string(detail)}
	}
	resp.Body = &boundedBody{resp.Body, maxMCPAnswer}
	return resp, nil
}

// boundedBody fails where an answer is larger than will be read.
type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err //nolint:wrapcheck // io.EOF must stay as it is
}
