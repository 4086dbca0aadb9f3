package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// Status tells how the proxy is; it asks its memory for that.
func (c *Client) Status(ctx context.Context) (*health.Status, error) { return c.status(ctx, true) }

func (c *Client) status(ctx context.Context, fresh bool) (*health.Status, error) {
	var s health.Status
	return &s, c.call(ctx, callTimeout, http.MethodGet, "/api/v1/status?fresh="+strconv.FormatBool(fresh), nil, &s)
}

// Counts counts the turns in the queue.
func (c *Client) Counts(ctx context.Context) (q capture.QueueStatus, err error) {
	return q, c.call(ctx, callTimeout, http.MethodGet, "/api/v1/queue", nil, &q)
}

// List is service.Queue.List.
func (c *Client) List(ctx context.Context, o ledger.ListOptions) (l service.Listed, err error) {
	v := url.Values{"state": {string(o.Condition)}, "group": {o.Group}, "limit": {strconv.Itoa(o.Limit)}, "text": {strconv.FormatBool(o.Text)}}
	return l, c.call(ctx, callTimeout, http.MethodGet, "/api/v1/queue/turns?"+v.Encode(), nil, &l)
}

// Retry is service.Queue.Retry.
func (c *Client) Retry(ctx context.Context, s service.Selection) (a service.Affected, err error) {
	return a, c.call(ctx, callTimeout, http.MethodPost, "/api/v1/queue/retry", s, &a)
}

// Drop is service.Queue.Drop.
func (c *Client) Drop(ctx context.Context, s service.Selection) (a service.Affected, err error) {
	return a, c.call(ctx, callTimeout, http.MethodPost, "/api/v1/queue/drop", s, &a)
}

// memory makes one call about memory.
func (c *Client) memory(ctx context.Context, timeout time.Duration, what string, in, out any) error {
	return c.call(ctx, timeout, http.MethodPost, "/api/v1/memory/"+what, in, out)
}

// Find is service.Service.Find.
func (c *Client) Find(ctx context.Context, s service.Selector) (m service.Meant, err error) {
	return m, c.memory(ctx, service.ForgetTimeout, "groups", s, &m)
}

// Show is service.Service.Show.
func (c *Client) Show(ctx context.Context, s service.Selector, last int) (m service.Shown, err error) {
	return m, c.memory(ctx, callTimeout, "show", admin.ShowRequest{Selector: s, Last: last}, &m)
}

// Catalog is service.Service.Catalog.
func (c *Client) Catalog(ctx context.Context, s service.Selector, limit int) (all service.Catalog, err error) {
	return all, c.memory(ctx, callTimeout, "list", admin.ListRequest{Selector: s, Limit: limit}, &all)
}

// Search is service.Service.Search.
func (c *Client) Search(ctx context.Context, s service.Selector, query string, all bool) (f service.Searched, err error) {
	return f, c.memory(ctx, callTimeout, "search", admin.SearchRequest{Selector: s, Query: query, All: all}, &f)
}

// Promote is service.Service.Promote.
func (c *Client) Promote(ctx context.Context, s service.Selector, p service.Promotion) (kept service.Promoted, err error) {
	return kept, c.memory(ctx, callTimeout, "promote", admin.PromoteRequest{Selector: s, Promotion: p}, &kept)
}

// Import is service.Service.Import.
func (c *Client) Import(ctx context.Context, s service.Selector, lines []service.Line) (done service.Imported, err error) {
	return done, c.memory(ctx, service.ImportTimeout, "import", admin.ImportRequest{Selector: s, Lines: lines}, &done)
}

// Forget is service.Service.Forget.
func (c *Client) Forget(ctx context.Context, s service.Selector) (done service.Forgotten, err error) {
	return done, c.memory(ctx, service.ForgetTimeout+callTimeout, "forget", s, &done)
}

// Accept is service.Service.Accept.
func (c *Client) Accept(ctx context.Context, a service.Acceptance) (done service.Accepted, err error) {
	return done, c.call(ctx, service.ForgetTimeout, http.MethodPost, "/api/v1/registry/accept", a, &done)
}

// Export is service.Service.Export. An export that was interrupted ends with a
// line that says so.
func (c *Client) Export(ctx context.Context, s service.Selector, f func(service.Record) error) error {
	query := url.Values{"group": {s.Group}, "session": {s.Session}, "user": {s.User}, "credential": {s.Credential}}
	return c.stream(ctx, "/api/v1/memory/export?"+query.Encode(), func(line []byte) error {
		var got struct {
			service.Record
			Error string `json:"error"`
		}
		if err := json.Unmarshal(line, &got); err != nil {
			return c.notOurs()
		}
		if got.Error != "" {
			return errors.New(got.Error)
		}
		return f(got.Record)
	})
}
