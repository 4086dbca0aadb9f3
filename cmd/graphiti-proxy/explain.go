package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/textproto"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// explainFlags are the flags of status for a request.
type explainFlags struct {
	headers []string
	body    string
	path    string
}

func (f *explainFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.headers, "header", nil, "explain a request with this header, a `name: value`; may be repeated")
	c.Flags().StringVar(&f.body, "body", "", "explain a request with the body in this `file`")
	c.Flags().StringVar(&f.path, "path", "/v1/chat/completions", "path of the request to explain")
	cli.Complete(c, "header", "X-Graphiti-User: ", "X-Graphiti-Session: ", "X-Graphiti-Workspace: ", "X-Graphiti-Agent: ")
}

func (f *explainFlags) given() bool { return len(f.headers) > 0 || f.body != "" }

// explain prints the person of a request, and the groups that it would read and write. It
// needs no running proxy, and sends nothing.
func (f *explainFlags) explain(c *cobra.Command) error {
	cfg, err := cli.LoadConfig(c)
	if err != nil {
		return err
	}
	header := make(http.Header)
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return cli.Usage(fmt.Errorf("--header %q is not of the form name: value", h))
		}
		header.Add(textproto.TrimString(name), textproto.TrimString(value))
	}
	var body []byte
	if f.body != "" {
		if body, err = os.ReadFile(f.body); err == nil {
			body, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), body)
		}
		if err != nil {
			return fmt.Errorf("--body: %w", err)
		}
	}
	if cfg.Identity.Mode != "multi" && cfg.Identity.Owner == "" { // the owner is in the directory
		if err := misnamed(cfg); err != nil {
			return err
		}
	}
	list, err := identity.LoadPeople(cfg.Identity.UsersFile)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	owner, err := ownerOf(cfg, log)
	if err != nil {
		return err
	}
	callers := newCallers(cfg, owner, list, log)
	id, namer, err := callers.settings(cfg)
	if err != nil {
		return err
	}
	m := proxy.Memory{MemorySettings: proxy.MemorySettings{Identity: id, Rules: rules(cfg), Recall: cfg.Recall.Enabled, Ingest: cfg.Ingest.Enabled}}
	switch {
	case cfg.Memory.Backend == "off":
		m.Off.Reason = "memory.backend"
	case cfg.RemoteMemory() && !cfg.Consented():
		m.Off.Reason = inject.ReasonConsent
	}
	e := m.Explain(dryPlanner(cfg, namer, m.Off.Reason), proxy.Limits{InspectBytes: cfg.Limits.InspectBytes, Messages: cfg.Limits.Messages}, f.path, header, body)
	return cli.Output(c, e, func(w io.Writer) { printExplanation(w, &e) })
}

// dryPlanner returns a planner that decides like a proxy with an empty memory. It returns
// nil if memory is off.
func dryPlanner(cfg *config.Config, namer graphiti.Namer, off inject.Reason) proxy.Planner {
	if off != inject.ReasonNone {
		return nil
	}
	return inject.New(inject.Services{}, groups{namer, searched(cfg, namer, new(embedded.Others))}, inject.RecallSettings{
		Timeout: cfg.Recall.Timeout, MaxFacts: cfg.Recall.MaxFacts, MaxChars: cfg.Recall.MaxChars,
	})
}

func printExplanation(w io.Writer, e *proxy.Explanation) {
	for _, c := range e.Claims {
		key := c.Key
		if key == "" {
			key = "-"
		}
		fmt.Fprintf(w, "%-13s %s (%s)\n", c.What, key, c.Why)
	}
	if e.Off != "" {
		off := e.Off
		if x, ok := inject.Reason(off).Explain(); ok {
			off += ": " + x.Says
		}
		fmt.Fprintf(w, "memory        off: %s\n", off)
		return
	}
	for _, list := range []struct {
		name    string
		targets []graphiti.Target
	}{{"reads", e.Reads}, {"writes", e.Writes}} {
		if len(list.targets) == 0 {
			fmt.Fprintf(w, "%-13s nothing\n", list.name)
		}
		for _, t := range list.targets {
			fmt.Fprintf(w, "%-13s %s (%s)\n", list.name, t.Group, t.Scope)
		}
	}
}
