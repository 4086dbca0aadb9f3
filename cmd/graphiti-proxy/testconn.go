package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/backend"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/health"
	"github.com/graphiti-proxy/graphiti-proxy/terminal"
)

func newTestConnectionCommand() *cobra.Command {
	var smoke, asJSON bool
	var patience time.Duration
	c := &cobra.Command{
		Use:   "test-connection",
		Short: "Test the configured memory service",
		Long: "Test Graphiti: its health, the API calls that the proxy makes, and a search; and\n" +
			"Redis, where replicas share one. With --smoke, also write a message to a temporary\n" +
			"group, wait until Graphiti shows it, and delete the group again, whatever happens.\n" +
			"No conversation is sent.",
		Example: "  GRAPHITI_URL=http://127.0.0.1:8000 graphiti-proxy test-connection --smoke",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := cli.LoadConfig(c)
			if err != nil {
				return err
			}
			if cfg.Memory.Endpoint == "" {
				return errors.New("there is no memory service to test: set memory.endpoint or GRAPHITI_URL (the embedded memory needs no connection)")
			}
			m, err := backend.Connect(memoryOptions(cfg, slog.New(slog.DiscardHandler)))
			if err != nil {
				return err
			}
			defer func() { _ = m.Memory().Close() }()
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return tryConnection(ctx, c.OutOrStdout(), m, cfg, smoke, asJSON)
		},
	}
	c.Flags().BoolVar(&smoke, "smoke", false, "also write a message to a temporary group, and delete it again")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().DurationVar(&patience, "timeout", time.Minute, "time for all checks")
	return c
}

// askMemory reports an error unless the memory service is healthy.
func askMemory(ctx context.Context, cfg *config.Config) error {
	m, err := backend.Connect(memoryOptions(cfg, slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	err = m.Memory().Health(ctx)
	if to := graphiti.Remedy(err); err != nil && to != "" {
		err = fmt.Errorf("%w; to do: %s", err, to)
	}
	return errors.Join(err, m.Memory().Close())
}

func tryConnection(ctx context.Context, w io.Writer, m backend.Service, cfg *config.Config, smoke, asJSON bool) error {
	var all []remote.Check
	failed := 0
	report := func(c remote.Check) {
		all = append(all, c)
		if !c.OK {
			failed++
		}
		if !asJSON {
			printCheck(w, c)
		}
	}
	if !asJSON {
		fmt.Fprintln(w, "Graphiti at "+cfg.Memory.Endpoint)
	}
	backend.Test(ctx, m, smoke, report)
	if failed == 0 {
		searchTimes(ctx, m.Memory(), cfg, report)
	}
	if cfg.State.Backend == "redis" {
		remote.Run(ctx, report, "redis", func(ctx context.Context) error { return redis.Check(ctx, cfg.State.RedisURL) }, redis.CheckRemedy)
	}
	if asJSON {
		if err := terminal.JSON(w, all); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(all))
	}
	return nil
}

// trials are questions whose searches are timed; none is like another, so that
// no cache answers them.
var trials = []string{"Where do I live?", "Which database did we decide on?", "When is the wedding?", "What is the name of my dentist?", "Why did the deploy fail?"}

// searchTimes says whether searches are answered while a request waits.
func searchTimes(ctx context.Context, m *graphiti.Memory, cfg *config.Config, report func(remote.Check)) {
	began := time.Now()
	var took []time.Duration
	for _, q := range trials {
		start := time.Now()
		if _, err := m.Search(ctx, []string{"graphiti_proxy_check"}, q, cfg.Recall.MaxFacts); err != nil {
			return // the search before it worked, and says more
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	s := health.Searches{Count: len(took), Half: took[len(took)/2].Milliseconds(), Most: took[len(took)-1].Milliseconds(), Timeout: cfg.Recall.Timeout.Milliseconds()}
	report(remote.Check{Name: "searches in time", Took: time.Since(began), OK: true, Detail: s.String(), Remedy: s.Late()})
}

func printCheck(w io.Writer, c remote.Check) {
	mark := "✓"
	switch {
	case !c.OK:
		mark = "✗"
	case c.Remedy != "":
		mark = "!"
	}
	fmt.Fprintf(w, "%s %-22s %6d ms\n", mark, c.Name, c.Took.Milliseconds())
	if c.Detail != "" {
		fmt.Fprintf(w, "    %s\n", c.Detail)
	}
	if c.Remedy != "" {
		fmt.Fprintf(w, "    to do: %s\n", c.Remedy)
	}
}
