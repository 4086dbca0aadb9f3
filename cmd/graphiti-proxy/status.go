package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

func newStatusCommand() *cobra.Command {
	var forwards bool
	c := described("status")
	c.RunE = configured(func(c *cobra.Command, _ []string, cfg *config.Config) error {
		if forwards {
			return cli.ForwardsTo(c.Context(), target(cfg))
		}
		proxy, err := cli.FindProxyToShow(c.Context(), target(cfg))
		if err != nil {
			return err
		}
		s, err := cli.Ask(c.Context(), proxy, service.Status, service.StatusRequest{Fresh: true})
		if err != nil {
			return err
		}
		err = cli.Output(c, s, func(w io.Writer) { printStatus(w, &s) })
		if err == nil && (s.Memory.State == health.StateTrouble || slices.Contains(s.Memory.Faults, health.FaultState)) {
			err = errors.New("the memory does not work properly; to do: " + s.Memory.Remedy)
		}
		return err
	})
	cli.JSONFlag(c)
	c.Flags().BoolVar(&forwards, "health", false, "print nothing; exit code 0 means that requests are forwarded, with or without memory")
	return c
}

func newStatusLineCommand() *cobra.Command {
	c := described("statusline")
	c.RunE = configured(func(c *cobra.Command, _ []string, cfg *config.Config) error {
		proxy, err := cli.FindProxyToShow(c.Context(), target(cfg))
		if err != nil {
			fmt.Fprintln(c.OutOrStdout(), "memory: the proxy does not run")
			return nil //nolint:nilerr // an answer, too
		}
		passed, failed := cli.Ask(c.Context(), proxy, service.Requests, service.RequestsRequest{Limit: 100})
		pending, err := cli.Ask(c.Context(), proxy, service.Pending, service.PendingRequest{})
		if err = errors.Join(failed, err); err == nil {
			fmt.Fprintln(c.OutOrStdout(), "memory: "+statusLine(passed.Requests, len(pending.Lines), time.Now()))
		}
		return err
	})
	return c
}

// statusLine describes the newest message, and the number of waiting lines.
func statusLine(requests []graphiti.LoggedRequest, waiting int, now time.Time) string {
	said := "no message yet"
	for _, r := range slices.Backward(requests) {
		if r.Fate == "" {
			continue
		}
		said = fmt.Sprintf("%d recalled, %s", r.Facts, r.Fate)
		if at, err := time.Parse(time.RFC3339, r.Time); err == nil {
			said += fmt.Sprintf(" %s ago", now.Sub(at).Truncate(time.Second))
		}
		break
	}
	if waiting > 0 {
		said += fmt.Sprintf(", %d waiting (graphiti-proxy memory pending)", waiting)
	}
	return said
}

func printStatus(w io.Writer, s *health.Status) {
	fmt.Fprintf(w, "proxy     running for %s, version %s\n", time.Since(s.Started).Round(time.Second), s.Version)
	clients := "http://"
	if s.TLS {
		clients = "https://"
	}
	fmt.Fprintf(w, "clients   %s%s (identity %s)\n", clients, cli.Reachable(s.Listen), s.Identity)
	if s.Owner != "" {
		fmt.Fprintf(w, "owner     %s; --user me names them in memory commands\n", s.Owner)
	}
	fmt.Fprintf(w, "upstream  %s\n", cli.UpstreamLine(s.Upstreams))
	s.Print(w)
}
