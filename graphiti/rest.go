package graphiti

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	// maxRESTAnswer bounds what is read of an answer. A larger one is an error,
	// and its connection is closed.
	maxRESTAnswer = 4 << 20

	// maxRESTList bounds a list of episodes, which is not held as a whole.
	maxRESTList = 64 << 20

	maxFactBytes   = 8 << 10 // of one fact's text
	maxNameBytes   = 512     // of ids and names
	maxDetailBytes = 8 << 10 // of an error's text; FastAPI quotes the request in it
)

// RESTOptions configures a REST.
type RESTOptions struct {
	Endpoint string // base address
	APIKey   string // sent as a bearer token; may be empty
}

// REST is Graphiti's FastAPI service (getzep/graphiti, server/graph_service).
// It accepts messages before it has kept them: see Durable.
type REST struct {
	base   string
	shown  string // base without credentials
	key    string
	client *http.Client

	// clock is by how much the service's clock was behind ours at its newest
	// answer; nil before there was one.
	clock atomic.Pointer[time.Duration]
}

var _ Memory = (*REST)(nil)

// NewREST returns a client. It does not connect.
func NewREST(o RESTOptions) (*REST, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the memory's endpoint is not an http:// or https:// address")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the memory's endpoint must end with its path: paths are added to it")
	}
	base := strings.TrimSuffix(u.String(), "/")
	u.User = nil
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
	t.MaxIdleConnsPerHost = 16
	t.MaxConnsPerHost = 64
	t.MaxResponseHeaderBytes = 64 << 10
	return &REST{
		base:  base,
		shown: u.String(),
		key:   o.APIKey,
		client: &http.Client{
			Transport: t,
			// A redirect could carry a conversation to where nobody agreed to.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

var errNotGraphiti = errors.New("the answer is not what Graphiti sends")

// restFact is a fact as the service sends it.
type restFact struct {
	UUID      string   `json:"uuid"`
	Name      string   `json:"name"`
	Fact      string   `json:"fact"`
	ValidAt   restTime `json:"valid_at"`
	InvalidAt restTime `json:"invalid_at"`
	CreatedAt restTime `json:"created_at"`
	ExpiredAt restTime `json:"expired_at"`
	Reference restTime `json:"reference_time"` // over MCP
	Source    string   `json:"source_node_uuid"`
	Target    string   `json:"target_node_uuid"`
}

// restTime reads the times that Python writes: with and without a zone, which
// then is UTC, and null.
type restTime struct{ time.Time }

func (t *restTime) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a time is not a string: %w", err)
	}
	if s == nil || *s == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02"} {
		if p, err := time.Parse(layout, *s); err == nil {
			t.Time = p
			return nil
		}
	}
	return errors.New("a time cannot be read")
}

// Search implements Memory.
func (r *REST) Search(ctx context.Context, groups []string, query string, max int) ([]Fact, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	var answer struct {
		Facts *[]restFact `json:"facts"` // nil: not there
	}
	in := map[string]any{"group_ids": groups, "query": query, "max_facts": max}
	if err := r.call(ctx, http.MethodPost, "/search", in, &answer); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if answer.Facts == nil {
		return nil, fmt.Errorf("search: %w", errNotGraphiti)
	}
	group := ""
	if len(groups) == 1 {
		group = groups[0]
	}
	var facts []Fact
	for _, f := range *answer.Facts {
		if len(facts) == max {
			break
		}
		if strings.TrimSpace(f.Fact) == "" {
			continue
		}
		facts = append(facts, f.fact(group))
	}
	return withoutChecks(groups, facts), nil
}

func (f *restFact) fact(group string) Fact {
	return Fact{
		UUID: cutBytes(f.UUID, maxNameBytes), Name: cutBytes(f.Name, maxNameBytes), Text: cutBytes(f.Fact, maxFactBytes), Group: group,
		CreatedAt: f.CreatedAt.Time, ValidAt: f.ValidAt.Time, InvalidAt: f.InvalidAt.Time, ExpiredAt: f.ExpiredAt.Time,
		ReferenceTime: f.Reference.Time,
		Source:        cutBytes(f.Source, maxNameBytes), Target: cutBytes(f.Target, maxNameBytes),
	}
}

// restMessage is a message as the service wants it. It must have a role, if
// only an empty one, and no uuid: that would mean an episode that exists.
type restMessage struct {
	Content           string    `json:"content"`
	RoleType          RoleType  `json:"role_type"`
	Role              string    `json:"role"`
	Name              string    `json:"name"`
	Timestamp         time.Time `json:"timestamp"`
	SourceDescription string    `json:"source_description"`
}

// Write implements Memory. A time ahead of now becomes now, by the service's
// clock: it would hide the episode until then.
func (r *REST) Write(ctx context.Context, group string, messages []Message) error {
	out, now := make([]restMessage, len(messages)), Now(r.Clock())
	for i, m := range messages {
		if m.Timestamp.After(now) {
			m.Timestamp = now
		}
		out[i] = restMessage{m.Content, m.RoleType, m.Role, m.Name, m.Timestamp.UTC(), m.SourceDescription}
	}
	if err := r.call(ctx, http.MethodPost, "/messages", map[string]any{"group_id": group, "messages": out}, &struct{}{}); err != nil {
		return fmt.Errorf("send messages: %w", err)
	}
	return nil
}

// restEpisode is an episode as the service sends it.
type restEpisode struct {
	UUID              string   `json:"uuid"`
	Name              string   `json:"name"`
	GroupID           string   `json:"group_id"`
	Content           string   `json:"content"`
	SourceDescription string   `json:"source_description"`
	CreatedAt         restTime `json:"created_at"`
	ValidAt           restTime `json:"valid_at"`
	EntityEdges       []string `json:"entity_edges"` // facts that are read from it, or found in it again
}

// Episodes implements Memory. It keeps no more contents than an answer
// may have elsewhere: of a long list the first episodes are without.
func (r *REST) Episodes(ctx context.Context, group string, n int) ([]Episode, error) {
	var out []Episode
	held, without := 0, 0 // bytes of contents, and how many episodes are without
	read := func(body io.Reader) error {
		limited := &io.LimitedReader{R: body, N: maxRESTList + 1}
		err := decodeList(limited, func(e *restEpisode) {
			out = append(out, Episode{
				cutBytes(e.UUID, maxNameBytes), cutBytes(e.Name, maxNameBytes), cutBytes(e.GroupID, maxNameBytes), e.Content,
				cutBytes(e.SourceDescription, maxNameBytes), e.CreatedAt.Time, e.ValidAt.Time,
			})
			if len(out) > n {
				held -= len(out[0].Content)
				out, without = out[1:], max(without-1, 0)
			}
			for held += len(e.Content); held > maxRESTAnswer; without++ {
				held -= len(out[without].Content)
				out[without].Content = ""
			}
		})
		if limited.N <= 0 {
			return fmt.Errorf("%w (%d MiB)", ErrTooLarge, maxRESTList>>20)
		}
		return err
	}
	if err := r.send(ctx, http.MethodGet, "/episodes/"+url.PathEscape(group)+"?last_n="+strconv.Itoa(n), nil, read); err != nil {
		return nil, fmt.Errorf("list episodes: %w", err)
	}
	return out, nil
}

// maxRESTExport bounds what is read of a group that is exported, and
// maxExport how many episodes are asked for.
const (
	maxRESTExport = 4 << 30
	maxExport     = 10_000_000
)

// Export implements Memory.
func (r *REST) Export(ctx context.Context, group string, f func(Episode) error) error {
	var failed error
	read := func(body io.Reader) error {
		return decodeList(io.LimitReader(body, maxRESTExport), func(e *restEpisode) {
			if failed == nil {
				failed = f(*e.episode())
			}
		})
	}
	err := r.send(ctx, http.MethodGet, "/episodes/"+url.PathEscape(group)+"?last_n="+strconv.Itoa(maxExport), nil, read)
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("export group: %w", err)
	}
	return nil
}

// decodeList calls f for each item of a JSON array, one after the other.
func decodeList[T any](r io.Reader, f func(*T)) error {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errNotGraphiti
	}
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return errNotGraphiti // err would quote the answer
		}
		f(&item)
	}
	if _, err := d.Token(); err != nil {
		return errNotGraphiti
	}
	return nil
}

// Health implements Memory. It does not tell whether messages are still being
// worked off: getzep/graphiti#1707.
func (r *REST) Health(ctx context.Context) error {
	var answer struct {
		Status string `json:"status"`
	}
	if err := r.call(ctx, http.MethodGet, "/healthcheck", nil, &answer); err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	if answer.Status != "healthy" {
		return fmt.Errorf("ask for health: %w", errNotGraphiti)
	}
	return nil
}

// Durable implements Memory: the service says 202 for what it has queued in
// memory.
func (r *REST) Durable() bool { return false }

// Apart implements Memory: the service has one worker for everything.
func (r *REST) Apart() bool { return false }

// Close implements Memory.
func (r *REST) Close() error {
	r.client.CloseIdleConnections()
	return nil
}

// call makes one call; in and out may be nil.
func (r *REST) call(ctx context.Context, method, path string, in, out any) error {
	return r.send(ctx, method, path, in, func(body io.Reader) error {
		b, err := io.ReadAll(io.LimitReader(body, maxRESTAnswer+1))
		if err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		if len(b) > maxRESTAnswer {
			return fmt.Errorf("%w (%d MiB)", ErrTooLarge, maxRESTAnswer>>20)
		}
		if out == nil {
			return nil
		}
		if err := json.Unmarshal(b, out); err != nil {
			return errNotGraphiti // err would quote the answer
		}
		return nil
	})
}

// send makes one call, and gives the body of a good answer to read.
func (r *REST) send(ctx context.Context, method, path string, in any, read func(io.Reader) error) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the address may hold a group's name
		}
		return err
	}
	// A body that was not read to its end closes its connection.
	defer resp.Body.Close()
	r.compareClocks(resp.Header, time.Now())
	if resp.StatusCode/100 != 2 {
		detail, _ := io.ReadAll(io.LimitReader(resp.Body, maxDetailBytes))
		return &StatusError{resp.StatusCode, retryAfter(resp.Header), cutBytes(string(detail), maxDetailBytes)}
	}
	return read(resp.Body)
}

// clockPrecision is how far two clocks may be apart without being different:
// the header has whole seconds, and answers take a moment.
const clockPrecision = 2 * time.Second

// Now is the time that a message may speak of at most, to a backend with that
// clock: ours, unless the backend's is clearly behind it.
func Now(clock time.Time) time.Time {
	now := time.Now()
	if !clock.IsZero() && now.Sub(clock) >= clockPrecision {
		return clock
	}
	return now
}

func (r *REST) compareClocks(h http.Header, now time.Time) {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		behind := now.Sub(t)
		r.clock.Store(&behind)
	}
}

// Clock implements Memory.
func (r *REST) Clock() time.Time {
	if behind := r.clock.Load(); behind != nil {
		return time.Now().Add(-*behind)
	}
	return time.Time{}
}

// retryAfter reads both forms of the header. A date is one by the clock of who
// answers.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.Atoi(v); err == nil && s > 0 {
		return time.Duration(min(s, 24*3600)) * time.Second
	}
	until, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(until.Sub(now), 0)
}

// cutBytes shortens s to n bytes at most, between two characters.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
