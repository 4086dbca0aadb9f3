package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newQueueCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "queue",
		Short: "Show queued turns and dead letters",
		Long: "Show queued turns, and dead letters: turns that the memory rejected. The command\n" +
			"asks the running proxy, or reads its files if none is running.",
		Example: "  graphiti-proxy queue status\n  graphiti-proxy queue list --state dead\n  graphiti-proxy queue retry --all",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newQueueStatusCommand(), newQueueListCommand(),
		newQueueChangeCommand("retry", "Deliver dead letters again", "queued again", service.Retry),
		newQueueChangeCommand("drop", "Delete dead letters permanently", "deleted", service.Drop))
	return c
}

// openQueueFiles opens the queue of a proxy that does not run, in its data directory or in
// the Redis of its replicas. It delivers nothing.
func openQueueFiles(_ context.Context, cfg *config.Config, found error) (*cli.Place, error) {
	if cfg.State.Backend == "redis" { // shared by replicas
		db, err := openRedis(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		return queuePlace(capture.OpenShared(db), "using the queue in Redis: no running proxy was found", db.Close), nil
	}
	if err := misnamed(cfg); err != nil {
		return nil, err
	}
	path := turnsFile(cfg)
	_, noFile := os.Stat(path)
	_, noLog := os.Stat(path + "-wal")
	if noFile != nil && noLog != nil {
		return nil, fmt.Errorf("no queue in %s, and %w", cfg.DataDir, found)
	}
	lock, err := datadir.Acquire(cfg.DataDir, datadir.Command)
	if errors.Is(err, datadir.ErrInUse) {
		return nil, cli.DirInUse(target(cfg), found)
	}
	if err != nil {
		return nil, err
	}
	turns, err := service.OpenLedger(cfg.DataDir, cfg.RemoteMemory())
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return queuePlace(capture.NewOffline(turns), inFiles(cfg), lock.Unlock), nil
}

func queuePlace(q *capture.Offline, says string, then func() error) *cli.Place {
	return &cli.Place{
		Host:  &service.Host{Queue: q, Counts: q.Status},
		Says:  says,
		Close: func() error { return errors.Join(q.Close(), then()) },
	}
}

func newQueueStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "status",
		Short:   "Count turns by state",
		Example: "  graphiti-proxy queue status --json | jq .pending",
		RunE: withPlace(openQueueFiles, nil, func(c *cobra.Command, _ []string, at *cli.Place) error {
			s, err := cli.Call(c.Context(), at, service.Counts, struct{}{})
			if err != nil {
				return err
			}
			return cli.Output(c, s, func(w io.Writer) { health.PrintQueue(w, &s) })
		}),
	}
	cli.JSONFlag(c)
	return c
}

func newQueueListCommand() *cobra.Command {
	var in service.TurnsRequest
	c := &cobra.Command{
		Use:     "list",
		Short:   "List undelivered turns, oldest first",
		Example: "  graphiti-proxy queue list --state dead --show-text",
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.Check(); err != nil {
				return cli.Usage(fmt.Errorf("--%w", err))
			}
			return withPlace(openQueueFiles, nil, func(c *cobra.Command, _ []string, at *cli.Place) error {
				l, err := cli.Call(c.Context(), at, service.Turns, in)
				if err != nil {
					return err
				}
				return cli.Output(c, l, func(w io.Writer) { cli.PrintTurns(w, l) })
			})(c, args)
		},
	}
	f := c.Flags()
	f.StringVar((*string)(&in.Condition), "state", "", "only turns that are waiting, under-way or dead")
	cli.Complete(c, "state", "waiting", "under-way", "dead")
	f.StringVar(&in.Group, "group", "", "only turns for this group")
	f.IntVar(&in.Limit, "limit", 50, "list at most this many turns")
	f.BoolVar(&in.Text, "show-text", false, "also print the messages")
	cli.JSONFlag(c)
	return c
}

func newQueueChangeCommand(name, short, done string, op service.Operation[service.Selection, service.Affected]) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:     name + " [number…]",
		Short:   short,
		Example: fmt.Sprintf("  graphiti-proxy queue %s 17 18\n  graphiti-proxy queue %s --all", name, name),
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return cli.Usage(fmt.Errorf("give the numbers of dead letters (see graphiti-proxy queue list --state dead), or --all"))
			}
			var numbers []int64
			for _, a := range args {
				n, err := strconv.ParseInt(a, 10, 64)
				if err != nil || n < 1 {
					return cli.Usage(fmt.Errorf("%q is not the number of a dead letter; see graphiti-proxy queue list --state dead", a))
				}
				numbers = append(numbers, n)
			}
			return withPlace(openQueueFiles, nil, func(c *cobra.Command, _ []string, at *cli.Place) error {
				changed, err := cli.Call(c.Context(), at, op, service.Selection{Numbers: numbers, All: all})
				if err != nil {
					return err
				}
				if changed.Turns > 0 || all {
					err = cli.Output(c, changed, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", terminal.Count(changed.Turns, "turn"), done) })
				}
				switch missing := len(numbers) - changed.Turns; {
				case err != nil || missing <= 0:
					return err
				case len(numbers) == 1:
					return fmt.Errorf("no dead letter has the number %d; see graphiti-proxy queue list --state dead", numbers[0])
				}
				return fmt.Errorf("%d of the %d numbers match no dead letter; see graphiti-proxy queue list --state dead", len(numbers)-changed.Turns, len(numbers))
			})(c, args)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all dead letters")
	cli.JSONFlag(c)
	return c
}
