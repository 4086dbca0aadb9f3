package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
	"github.com/graphiti-proxy/graphiti-proxy/service"
)

// memory is what the commands ask of a memory: the service itself where no
// proxy runs, else the same functions over the admin side of the one that does.
type memory interface {
	Find(context.Context, service.Selector) (service.Meant, error)
	Show(ctx context.Context, s service.Selector, last int) (service.Shown, error)
	Search(ctx context.Context, s service.Selector, query string, all bool) (service.Searched, error)
	Promote(context.Context, service.Selector, service.Promotion) (service.Promoted, error)
	Import(context.Context, service.Selector, []service.Line) (service.Imported, error)
	Forget(context.Context, service.Selector) (service.Forgotten, error)
	Export(context.Context, service.Selector, func(service.Record) error) error
}

// opened is the memory for one command, and its queue.
type opened struct {
	memory
	queue func(context.Context) (capture.QueueStatus, error)
	close func() error
}

// withMemory runs a command about memory.
func withMemory(f func(c *cobra.Command, args []string, m *opened) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		cfg, err := loadConfig(c)
		if err != nil {
			return err
		}
		m, err := openForCommand(c.Context(), cfg)
		if err != nil {
			return err
		}
		return errors.Join(f(c, args, m), m.close())
	}
}

// openForCommand finds the proxy that runs, else opens its files for as long as
// the command takes.
func openForCommand(ctx context.Context, cfg *config.Config) (*opened, error) {
	at, found := findOwner(ctx, cfg)
	if found == nil {
		r := running{at}
		return &opened{r, r.queue, func() error { return nil }}, nil
	}
	if byAddress(cfg) || !errors.Is(found, errNoProxy) {
		return nil, found
	}
	// What it would log is not what was asked for.
	a, err := openStopped(cfg, slog.New(slog.DiscardHandler))
	if errors.Is(err, datadir.ErrInUse) {
		return nil, unreachable(cfg, found)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case a.files.broken != nil:
		err = datadir.Each(a.files.broken)[0]
	case a.service == nil:
		err = errors.New(admin.MemoryIsOff(a.status(ctx, false)))
	default:
		queue := func(context.Context) (capture.QueueStatus, error) { return a.queue(), nil }
		return &opened{a.service, queue, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			return a.Shutdown(ctx)
		}}, nil
	}
	return nil, errors.Join(err, a.Shutdown(ctx))
}

// unreachable says that the proxy of a data directory cannot be asked, and why
// its files are not used without it.
func unreachable(cfg *config.Config, found error) error {
	if pid, _ := datadir.Holder(cfg.DataDir); pid > 0 {
		return fmt.Errorf("a proxy (process %d) runs on %s, and its admin side cannot be found; name its admin.listen: %w", pid, cfg.DataDir, found)
	}
	return fmt.Errorf("a proxy runs on %s, and its admin side cannot be found; name its admin.listen: %w", cfg.DataDir, found)
}

// running is the memory of a proxy that runs, asked over its admin side.
type running struct{ cfg *config.Config }

func (r running) queue(ctx context.Context) (q capture.QueueStatus, err error) {
	return q, ask(ctx, r.cfg, http.MethodGet, "/api/v1/queue", nil, &q)
}

// call makes one call about memory.
func (r running) call(ctx context.Context, timeout time.Duration, what string, in, out any) error {
	return askFor(ctx, timeout, r.cfg, http.MethodPost, "/api/v1/memory/"+what, in, out)
}

// Find implements memory.
func (r running) Find(ctx context.Context, s service.Selector) (m service.Meant, err error) {
	return m, r.call(ctx, service.ForgetTimeout, "groups", s, &m)
}

// Show implements memory.
func (r running) Show(ctx context.Context, s service.Selector, last int) (m service.Shown, err error) {
	return m, r.call(ctx, adminTimeout, "show", admin.ShowRequest{Selector: s, Last: last}, &m)
}

// Search implements memory.
func (r running) Search(ctx context.Context, s service.Selector, query string, all bool) (f service.Searched, err error) {
	return f, r.call(ctx, adminTimeout, "search", admin.SearchRequest{Selector: s, Query: query, All: all}, &f)
}

// Promote implements memory.
func (r running) Promote(ctx context.Context, s service.Selector, p service.Promotion) (kept service.Promoted, err error) {
	return kept, r.call(ctx, adminTimeout, "promote", admin.PromoteRequest{Selector: s, Promotion: p}, &kept)
}

// Import implements memory.
func (r running) Import(ctx context.Context, s service.Selector, lines []service.Line) (done service.Imported, err error) {
	return done, r.call(ctx, importWindow, "import", admin.ImportRequest{Selector: s, Lines: lines}, &done)
}

// Forget implements memory.
func (r running) Forget(ctx context.Context, s service.Selector) (done service.Forgotten, err error) {
	return done, r.call(ctx, service.ForgetTimeout+adminTimeout, "forget", s, &done)
}

// Export implements memory, and finds out whether the lines are all.
func (r running) Export(ctx context.Context, s service.Selector, f func(service.Record) error) error {
	query := url.Values{"group": {s.Group}}
	for name, value := range map[string]string{"session": s.Session, "user": s.User, "credential": s.Credential} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return stream(ctx, r.cfg, "/api/v1/memory/export?"+query.Encode(), func(line []byte) error {
		var got struct {
			service.Record
			Error string `json:"error"`
		}
		if err := json.Unmarshal(line, &got); err != nil {
			return notOurs(r.cfg)
		}
		if got.Error != "" {
			return errors.New(got.Error)
		}
		return f(got.Record)
	})
}
