package mcp

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

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// toolNames are the names of one tool, the current one first.
type toolNames []string

// toolSet maps the tools of a server to the arguments that they take.
type toolSet map[string]map[string]bool

func (s toolSet) find(t toolNames) (name string, takes map[string]bool, err error) {
	for _, name := range t {
		if takes, ok := s[name]; ok {
			return name, takes, nil
		}
	}
	return "", nil, fmt.Errorf("the MCP server has no tool %s", strings.Join(t, " or "))
}

// session is a session with an MCP server. It starts on demand, and again if the server no
// longer knows it. It is safe for concurrent use.
type session struct {
	endpoints []string // addresses to try
	healthURL string
	shown     string
	http      *http.Client
	options   remote.Options
	client    *sdk.Client

	// current holds the session. The caller that receives it may change it; others wait.
	current chan state
}

// state is an open session; the zero state is closed.
type state struct {
	session *sdk.ClientSession
	tools   toolSet
}

func newSession(o remote.Options) (*session, error) {
	u, _, client, err := remote.Dial(o)
	if err != nil {
		return nil, err
	}
	base := *u
	u.Path = strings.TrimSuffix(u.Path, "/")
	if u.Path == "" {
		u.Path = "/mcp"
	}
	base.Path = strings.TrimSuffix(u.Path, "/mcp") + "/health"
	shown := *u
	shown.User = nil
	client.Transport = &transport{client.Transport}
	s := &session{
		endpoints: []string{u.String(), u.String() + "/"}, healthURL: base.String(), shown: shown.String(), http: client, options: o,
		client:  sdk.NewClient(&sdk.Implementation{Name: "graphiti-proxy", Version: "1"}, nil),
		current: make(chan state, 1),
	}
	s.current <- state{}
	return s, nil
}

// tools returns the tools of the server, in the open session or a new one.
func (s *session) tools(ctx context.Context) (toolSet, error) {
	st, err := s.open(ctx)
	return st.tools, err
}

// open returns the session, and begins one if there is none.
func (s *session) open(ctx context.Context) (st state, err error) {
	select {
	case st = <-s.current:
	case <-ctx.Done():
		return st, ctx.Err()
	}
	defer func() { s.current <- st }()
	if st.session != nil {
		return st, nil
	}
	st, err = s.begin(ctx)
	s.options.Note("initialize", err)
	return st, err
}

// begin opens a session and lists the tools. The version of the server determines the valid
// address of the two.
func (s *session) begin(ctx context.Context) (st state, err error) {
	for _, endpoint := range s.endpoints {
		transport := &sdk.StreamableClientTransport{
			Endpoint: endpoint, HTTPClient: s.http, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxMCPAnswer,
		}
		if st.session, err = s.client.Connect(ctx, transport, nil); err == nil {
			break
		}
		var status *graphiti.StatusError
		if !errors.As(err, &status) || status.Code != http.StatusNotFound && status.Code/100 != 3 {
			return state{}, outer(ctx, err)
		}
	}
	if err != nil {
		return state{}, outer(ctx, err)
	}
	st.tools = make(toolSet)
	for tool, err := range st.session.Tools(ctx, nil) {
		if err != nil {
			_ = st.session.Close()
			return state{}, outer(ctx, err)
		}
		var schema struct{ Properties map[string]any }
		b, _ := json.Marshal(tool.InputSchema) // came as JSON
		_ = json.Unmarshal(b, &schema)         // an unreadable schema has no arguments
		takes := make(map[string]bool, len(schema.Properties))
		for name := range schema.Properties {
			takes[name] = true
		}
		st.tools[tool.Name] = takes
	}
	return st, nil
}

// drop ends a failed session if it is still in use.
func (s *session) drop(session *sdk.ClientSession) {
	st := <-s.current
	if st.session == session {
		st = state{}
	} else {
		session = nil
	}
	s.current <- st
	if session != nil {
		_ = session.Close()
	}
}

// call calls a tool and decodes its answer into out, which may be nil, or a *[]byte for the
// raw answer. It drops the session after an error. If the server does not know the session,
// it repeats the call once in a new session.
func (s *session) call(ctx context.Context, tool string, args map[string]any, out any) error {
	for again := true; ; again = false {
		st, err := s.open(ctx)
		if err != nil {
			return err
		}
		r, err := st.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
		if err == nil {
			err = readResult(r, out)
			s.options.Note(tool, err)
			return err
		}
		if ctx.Err() == nil {
			s.drop(st.session)
		}
		lost := errors.Is(err, sdk.ErrSessionMissing)
		err = outer(ctx, err)
		if s.options.Note(tool, err); !again || !lost {
			return err
		}
	}
}

// outer returns an error without the server's own text.
func outer(ctx context.Context, err error) error {
	var status *graphiti.StatusError
	var to *url.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &status):
		return status
	case errors.As(err, &to):
		return fmt.Errorf("call the MCP server: %w", to.Err)
	case errors.Is(err, sdk.ErrSessionMissing), errors.Is(err, sdk.ErrConnectionClosed):
		return fmt.Errorf("call the MCP server: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("call the MCP server: %w", remote.ErrNotGraphiti)
}

// readResult decodes the result of a tool: JSON in its text or, from newer servers, in its
// structured content. A tool reports a failure in one of two forms.
func readResult(r *sdk.CallToolResult, out any) error {
	text := ""
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			text += t.Text
		}
	}
	if r.IsError { // it does not take these arguments
		return remote.ToolError(http.StatusUnprocessableEntity, text)
	}
	b := []byte(text)
	if !json.Valid(b) || len(b) == 0 {
		structured, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return remote.ErrNotGraphiti
		}
		b = structured
		var wrapped struct{ Result json.RawMessage }
		if json.Unmarshal(b, &wrapped) == nil && wrapped.Result != nil {
			b = wrapped.Result
		}
	}
	var failed struct{ Error string }
	if json.Unmarshal(b, &failed) == nil && failed.Error != "" {
		if strings.HasPrefix(failed.Error, "Invalid ") {
			return remote.ToolError(http.StatusUnprocessableEntity, failed.Error)
		}
		return remote.ToolError(http.StatusServiceUnavailable, failed.Error)
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = b
		return nil
	}
	if out != nil && json.Unmarshal(b, out) != nil {
		return remote.ErrNotGraphiti
	}
	return nil
}

// episodesIn reads a list of episodes, bare or as the member of an object.
func episodesIn(b []byte) (list []remote.EpisodeJSON, err error) {
	if json.Unmarshal(b, &list) == nil {
		return list, nil
	}
	var answer struct {
		Episodes []remote.EpisodeJSON
		Message  string // "No episodes found for group"
	}
	if json.Unmarshal(b, &answer) != nil || answer.Episodes == nil && answer.Message == "" {
		return nil, remote.ErrNotGraphiti
	}
	return answer.Episodes, nil
}

// health requests the server's health, outside of the session.
func (s *session) health(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.healthURL, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		err = outer(ctx, err)
		s.options.Note("health", err)
		return err
	}
	s.options.Note("health", nil)
	return resp.Body.Close()
}

// close ends the session. A server that does not answer is not waited for.
func (s *session) close() error {
	st := <-s.current
	s.current <- state{}
	if st.session == nil {
		return nil
	}
	if err := st.session.Close(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("close the MCP session: %w", err)
	}
	return nil
}

// farewell bounds how long the end of a session waits for the server.
const farewell = 2 * time.Second

// transport converts unsuccessful answers to errors, and bounds the others.
type transport struct{ base http.RoundTripper }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete {
		ctx, cancel := context.WithTimeout(r.Context(), farewell)
		defer cancel()
		r = r.WithContext(ctx)
	}
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Client wraps it
	}
	missing := resp.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != ""
	if resp.StatusCode/100 != 2 && !missing && r.Method != http.MethodDelete {
		return nil, remote.StatusError(resp)
	}
	resp.Body = &boundedBody{resp.Body, maxMCPAnswer}
	return resp, nil
}

// boundedBody fails when an answer is too large.
type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, graphiti.ErrTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err //nolint:wrapcheck // io.EOF must stay as it is
}
