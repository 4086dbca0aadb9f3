package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

func newStatusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "status",
		Short:   "Ask the running proxy how it is",
		Long:    "Ask the running proxy how it is. The exit code is 0 when everything works.",
		Example: "  graphiti-proxy status\n  graphiti-proxy status --json | jq .queue",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(c)
			if err != nil {
				return err
			}
			s, err := fetchStatus(c.Context(), cfg)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(c.OutOrStdout(), s)
			} else {
				printStatus(c.OutOrStdout(), s)
			}
			if err == nil && s.Memory.State == admin.StateTrouble {
				err = errors.New("the memory is in trouble: " + s.Memory.Remedy)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// fetchStatus asks the admin side.
func fetchStatus(ctx context.Context, cfg *config.Config) (*admin.Status, error) {
	if cfg.Admin.Listen == "off" {
		return nil, errors.New("admin.listen is off, so the proxy cannot be asked")
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+cfg.Admin.Listen+"/api/v1/status", nil)
	if err != nil {
		return nil, fmt.Errorf("ask the admin side: %w", err)
	}
	if cfg.Admin.Token != "" {
		req.Header.Set("Authorization", "Bearer "+cfg.Admin.Token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no proxy answers on %s; start one with graphiti-proxy serve, or name its admin.listen", cfg.Admin.Listen)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, errors.New("the admin side refuses the token; set admin.token to the proxy's")
	}
	var s admin.Status
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&s); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("what answers on %s is not graphiti-proxy", cfg.Admin.Listen)
	}
	return &s, nil
}

func printStatus(w io.Writer, s *admin.Status) {
	fmt.Fprintf(w, "proxy     running for %s, version %s\n", time.Since(s.Started).Round(time.Second), s.Version)
	fmt.Fprintf(w, "clients   http://%s (identity %s)\n", s.Listen, s.Identity)
	fmt.Fprintf(w, "upstream  %s, Anthropic's API %s\n", s.OpenAI, s.Anthropic)
	m := s.Memory
	fmt.Fprintf(w, "memory    %s, %s", m.Backend, m.State)
	if m.Where != "" {
		fmt.Fprintf(w, ", %s", m.Where)
	}
	fmt.Fprintf(w, "\n          recall %s, ingestion %s\n", onOff(m.Recall), onOff(m.Ingest))
	if m.Why != "" {
		fmt.Fprintf(w, "          %s\n", m.Why)
	}
	if m.Remedy != "" {
		fmt.Fprintf(w, "          to do: %s\n", m.Remedy)
	}
	q := s.Queue
	fmt.Fprintf(w, "turns     %d waiting, %d delivered, %d dropped, %d refused\n", q.Pending, q.Delivered, q.Dropped, q.Dead)
	if q.Oldest != nil {
		fmt.Fprintf(w, "          the oldest has waited for %s\n", time.Since(*q.Oldest).Round(time.Second))
	}
	if q.Failing != nil {
		fmt.Fprintf(w, "          delivery has failed for %s: %s\n", time.Since(*q.Failing).Round(time.Second), q.LastError)
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
