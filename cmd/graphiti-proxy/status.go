package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/health"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin/client"
)

func newStatusCommand() *cobra.Command {
	var asJSON, forwards bool
	var request explainFlags
	c := &cobra.Command{
		Use:   "status",
		Short: "Ask the running proxy how it is, or explain what it would make of a request",
		Long: "Ask the running proxy how it is. The exit code is 0 when everything works.\n" +
			"With --header or --body: say who such a request would be from, which groups it\n" +
			"would read and write, and why. Nothing is sent for that.",
		Example: "  graphiti-proxy status\n  graphiti-proxy status --json | jq .queue\n  graphiti-proxy status --header 'X-Graphiti-User: josh' --body request.json",
		RunE: func(c *cobra.Command, _ []string) error {
			if request.given() {
				return request.explain(c, asJSON)
			}
			cfg, err := loadConfig(c)
			if err != nil {
				return err
			}
			if forwards {
				return client.Forwards(c.Context(), target(cfg))
			}
			proxy, err := client.FindToShow(c.Context(), target(cfg))
			if err != nil {
				return err
			}
			s, err := proxy.Status(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(c.OutOrStdout(), s)
			} else {
				printStatus(c.OutOrStdout(), s)
			}
			if err == nil && (s.Memory.State == health.StateTrouble || slices.Contains(s.Memory.Faults, health.FaultState)) {
				err = errors.New("the memory is in trouble: " + s.Memory.Remedy)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&forwards, "health", false, "print nothing; the exit code says whether requests are forwarded, whatever memory does")
	request.add(c)
	return c
}

// upstreamLine names the default upstream, and then those of other APIs.
func upstreamLine(upstreams map[string]string) string {
	line := upstreams[registry.DefaultUpstream]
	for _, name := range registry.Upstreams[1:] {
		line += ", " + name + " " + upstreams[name]
	}
	return line
}

func printStatus(w io.Writer, s *health.Status) {
	fmt.Fprintf(w, "proxy     running for %s, version %s\n", time.Since(s.Started).Round(time.Second), s.Version)
	clients := "http://"
	if s.TLS {
		clients = "https://"
	}
	fmt.Fprintf(w, "clients   %s%s (identity %s)\n", clients, s.Listen, s.Identity)
	fmt.Fprintf(w, "upstream  %s\n", upstreamLine(s.Upstreams))
	m := s.Memory
	fmt.Fprintf(w, "memory    %s, %s", m.Backend, m.State)
	if m.Where != "" {
		fmt.Fprintf(w, ", %s", m.Where)
	}
	fmt.Fprintf(w, "\n          recall %s, ingestion %s\n", onOff(m.Recall), onOff(m.Ingest))
	if m.ConsentSince != nil {
		fmt.Fprintf(w, "          consent for %s, since %s\n", m.ConsentFor, m.ConsentSince.Local().Format(time.DateTime))
	}
	if m.Emptied > 0 {
		fmt.Fprintf(w, "          %d messages of conversations lost their block to memory forget; those conversations get none any more\n", m.Emptied)
	}
	if n := len(s.Blocked); n > 0 {
		fmt.Fprintf(w, "          %s blocked, because memory forget has not ended: nothing of them is recalled, and new turns for them wait: %s\n",
			counted(n, "group"), strings.Join(s.Blocked, ", "))
		fmt.Fprintln(w, "          it goes on by itself; to see what keeps it from its end, run the same memory forget again")
	}
	if m.Why != "" {
		fmt.Fprintf(w, "          %s\n", m.Why)
	}
	if m.Since != nil {
		fmt.Fprintf(w, "          since %s\n", m.Since.Local().Format(time.DateTime))
	}
	if m.Remedy != "" {
		fmt.Fprintf(w, "          to do: %s\n", m.Remedy)
	}
	printQueue(w, &s.Queue)
	if len(s.Waiting) > 0 {
		fmt.Fprintf(w, "settings  changed in the file, and taken over by a restart: %s\n", strings.Join(s.Waiting, ", "))
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
