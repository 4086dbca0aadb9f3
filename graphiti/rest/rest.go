package rest

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

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

const (
	// maxRESTAnswer bounds an answer, in bytes. A larger one is an error, and its
	// connection is closed.
	maxRESTAnswer = 4 << 20

	// maxRESTList bounds a list of episodes.
	maxRESTList = 64 << 20
)

// Client is a client for Graphiti's FastAPI service (getzep/graphiti,
// server/graph_service). The service accepts messages before it has stored them.
type Client struct {
	base   string
	shown  string // base without credentials
	client *http.Client

	options remote.Options

	// clock is the lag of the service's clock against the local one at the newest answer;
	// nil before the first.
	clock atomic.Pointer[time.Duration]
}

// New returns a client. It does not connect.
func New(o remote.Options) (*Client, error) {
	base, shown, client, err := remote.Dial(o)
	if err != nil {
		return nil, err
	}
	return &Client{base: strings.TrimSuffix(base.String(), "/"), shown: shown, client: client, options: o}, nil
}

// Memory returns the client in all roles of a memory.
func (r *Client) Memory() *graphiti.Memory {
	return &graphiti.Memory{Searcher: r, Writer: r, Forgetter: r, Connection: r, Arrivals: r}
}

// Search implements graphiti.Searcher.
func (r *Client) Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	var answer struct {
		Facts *[]remote.FactJSON `json:"facts"` // nil if missing
	}
	path, in := "/search", map[string]any{"group_ids": groups, "query": query, "max_facts": max}
	if r.options.GetMemory && len(groups) == 1 {
		path, in = "/get-memory", map[string]any{"group_id": groups[0], "messages": asMessages(query), "max_facts": max, "center_node_uuid": nil}
	}
	if err := r.call(ctx, http.MethodPost, path, in, &answer); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if answer.Facts == nil {
		return nil, fmt.Errorf("search: %w", remote.ErrNotGraphiti)
	}
	group := ""
	if len(groups) == 1 {
		group = groups[0]
	}
	var facts []graphiti.Fact
	for _, f := range *answer.Facts {
		if len(facts) == max {
			break
		}
		if strings.TrimSpace(f.Fact) == "" {
			continue
		}
		facts = append(facts, f.In(group))
	}
	return facts, nil
}

// asMessages returns a query in the form of the conversation that /get-memory takes: the
// question last.
func asMessages(query string) (out []map[string]string) {
	question, before, leaning := strings.Cut(query, graphiti.Earlier)
	if leaning {
		out = append(out, map[string]string{"role_type": "user", "role": "", "content": before})
	}
	return append(out, map[string]string{"role_type": "user", "role": "", "content": question})
}

// restMessage is a message in the service's form. It must have a role, which may be empty,
// and no uuid, which would name an existing episode.
type restMessage struct {
	Content           string            `json:"content"`
	RoleType          graphiti.RoleType `json:"role_type"`
	Role              string            `json:"role"`
	Name              string            `json:"name"`
	Timestamp         time.Time         `json:"timestamp"`
	SourceDescription string            `json:"source_description"`
}

// Write implements graphiti.Writer. A time in the future, by the service's clock, becomes
// now: until then the service would hide the episode.
func (r *Client) Write(ctx context.Context, group string, messages []graphiti.Row) error {
	out, now := make([]restMessage, len(messages)), r.latest()
	for i, m := range messages {
		if m.Said.After(now) {
			m.Said = now
		}
		out[i] = restMessage{m.Text, m.Role, m.Speaker, m.Name, m.Said.UTC(), m.Source}
	}
	if err := r.call(ctx, http.MethodPost, "/messages", map[string]any{"group_id": group, "messages": out}, &struct{}{}); err != nil {
		return fmt.Errorf("send messages: %w", err)
	}
	return nil
}

// Episodes implements graphiti.Arrivals.
func (r *Client) Episodes(ctx context.Context, group string, n int) (out []graphiti.Row, err error) {
	err = r.list(ctx, group, n, maxRESTList, func(e *remote.EpisodeJSON) error {
		out = append(out, e.Bounded())
		return nil
	})
	return out, err
}

// maxRESTExport bounds the answer with an exported group, in bytes, and maxExport the
// number of its episodes.
const (
	maxRESTExport = 4 << 30
	maxExport     = 10_000_000
)

func (r *Client) Export(ctx context.Context, group string, f func(graphiti.Row) error) error {
	return r.list(ctx, group, maxExport, maxRESTExport, func(e *remote.EpisodeJSON) error { return f(e.Row()) })
}

// list calls f for each of the last n episodes of a group. It reads at most most bytes.
func (r *Client) list(ctx context.Context, group string, n int, most int64, f func(*remote.EpisodeJSON) error) error {
	err := r.send(ctx, http.MethodGet, "/episodes/"+url.PathEscape(group)+"?last_n="+strconv.Itoa(n), nil, func(body io.Reader) error {
		limited := &io.LimitedReader{R: body, N: most + 1}
		err := decodeList(limited, f)
		if limited.N <= 0 {
			return fmt.Errorf("%w (%d MiB)", graphiti.ErrTooLarge, most>>20)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list episodes: %w", err)
	}
	return nil
}

// decodeList calls f for each item of a JSON array, until it returns an error.
func decodeList[T any](r io.Reader, f func(*T) error) error {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return remote.ErrNotGraphiti
	}
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return remote.ErrNotGraphiti // err would quote the answer
		}
		if err := f(&item); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return remote.ErrNotGraphiti
	}
	return nil
}

// FactsOf returns the facts of a listed episode, with one call for each: the service cannot return
// several.
func (r *Client) FactsOf(ctx context.Context, group string, episode *graphiti.Row) ([]graphiti.Fact, error) {
	facts, err := remote.LookUp(ctx, group, episode.Facts, func(ctx context.Context, uuid string) (f remote.FactJSON, err error) {
		err = r.call(ctx, http.MethodGet, "/entity-edge/"+url.PathEscape(uuid), nil, &f)
		return f, err
	})
	if err != nil {
		return facts, fmt.Errorf("look up facts: %w", err)
	}
	return facts, nil
}

// Health implements graphiti.Connection. It does not cover the queue of accepted messages:
// getzep/graphiti#1707.
func (r *Client) Health(ctx context.Context) error {
	var answer struct {
		Status string `json:"status"`
	}
	if err := r.call(ctx, http.MethodGet, "/healthcheck", nil, &answer); err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	if answer.Status != "healthy" {
		return fmt.Errorf("ask for health: %w", remote.ErrNotGraphiti)
	}
	return nil
}

// unknownFact is the id of no fact.
const unknownFact = "00000000-0000-4000-8000-000000000000"

// CheckDatabase looks up a fact that does not exist: the service asks its database, and no
// model, and answers 404.
func (r *Client) CheckDatabase(ctx context.Context) error {
	path := "/entity-edge/" + unknownFact
	err := remote.Present(r.exchange(ctx, http.MethodGet, path, nil, func(io.Reader) error { return remote.ErrNotGraphiti }))
	r.options.Note(nameOf(http.MethodGet, path), err)
	if err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	return nil
}

// Apart implements graphiti.Writer: the service has one worker for everything.
func (r *Client) Apart() bool { return false }

func (r *Client) Close() error {
	r.client.CloseIdleConnections()
	return nil
}

// call makes one call; in and out may be nil.
func (r *Client) call(ctx context.Context, method, path string, in, out any) error {
	return r.send(ctx, method, path, in, func(body io.Reader) error {
		b, err := io.ReadAll(io.LimitReader(body, maxRESTAnswer+1))
		if err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		if len(b) > maxRESTAnswer {
			return fmt.Errorf("%w (%d MiB)", graphiti.ErrTooLarge, maxRESTAnswer>>20)
		}
		if out == nil {
			return nil
		}
		if err := json.Unmarshal(b, out); err != nil {
			return remote.ErrNotGraphiti // err would quote the answer
		}
		return nil
	})
}

// send makes one call, and passes the body of a successful answer to read.
func (r *Client) send(ctx context.Context, method, path string, in any, read func(io.Reader) error) error {
	err := r.exchange(ctx, method, path, in, read)
	r.options.Note(nameOf(method, path), err)
	return err
}

// nameOf returns the name of a call: its method and the first part of its path. The rest
// may contain the name of a group.
func nameOf(method, path string) string {
	first, _, _ := strings.Cut(path[1:], "/")
	first, _, _ = strings.Cut(first, "?")
	return method + " /" + first
}

func (r *Client) exchange(ctx context.Context, method, path string, in any, read func(io.Reader) error) error {
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
	resp, err := r.client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the address may contain a group's name
		}
		return err
	}
	// Closing a body that was not read to its end closes its connection, too.
	defer resp.Body.Close()
	r.compareClocks(resp.Header, time.Now())
	if resp.StatusCode/100 != 2 {
		return remote.StatusError(resp)
	}
	return read(resp.Body)
}

func (r *Client) compareClocks(h http.Header, now time.Time) {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		behind := now.Sub(t)
		r.clock.Store(&behind)
	}
}

// clockPrecision is the tolerated clock difference. The Date header has whole seconds, and
// answers take a moment.
const clockPrecision = 2 * time.Second

// latest returns the latest time of a message that the service shows at once: now, by the
// service's clock if that is clearly slower.
func (r *Client) latest() time.Time {
	now := time.Now()
	if behind := r.clock.Load(); behind != nil && *behind >= clockPrecision {
		return now.Add(-*behind)
	}
	return now
}
