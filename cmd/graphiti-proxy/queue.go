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
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
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
		Short: "Show turns that wait for the memory, and dead letters",
		Long: "Show turns that wait for the memory, and dead letters: turns that the memory\n" +
			"refused. Asks the running proxy; when none runs, reads its files.",
		Example: "  graphiti-proxy queue status\n  graphiti-proxy queue list --state dead\n  graphiti-proxy queue retry --all",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newQueueStatusCommand(), newQueueListCommand(),
		newQueueChangeCommand("retry", "Deliver dead letters again", "queued again", queue.Retry),
		newQueueChangeCommand("drop", "Delete dead letters for good", "deleted", queue.Drop))
	return c
}

// queue is the queue of a proxy, running or not.
type queue interface {
	Counts(context.Context) (capture.QueueStatus, error)
	List(context.Context, ledger.ListOptions) (service.Listed, error)
	Retry(context.Context, service.Selection) (service.Affected, error)
	Drop(context.Context, service.Selection) (service.Affected, error)
}

// openQueue finds the running proxy's queue, else the one in the data
// directory; where says which.
func openQueue(ctx context.Context, cfg *config.Config) (q queue, where string, closes func() error, err error) {
	to := target(cfg)
	running, err := cli.FindProxy(ctx, to)
	switch {
	case err == nil:
		return running, usingProxy(running), func() error { return nil }, nil
	case to.ByAddress || !errors.Is(err, cli.ErrNoProxy):
		return nil, "", nil, err
	case cfg.State.Backend == "redis": // what replicas share
		db, err := openRedis(cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, "", nil, err
		}
		q := service.NewStoppedQueue(capture.OpenShared(db))
		return q, "using the queue in Redis: no running proxy was found", func() error { return errors.Join(q.Close(), db.Close()) }, nil
	}
	if err := misnamed(cfg); err != nil {
		return nil, "", nil, err
	}
	path := turnsFile(cfg)
	_, noFile := os.Stat(path)
	_, noLog := os.Stat(path + "-wal")
	if noFile != nil && noLog != nil {
		return nil, "", nil, fmt.Errorf("there is no queue in %s, and %w", cfg.DataDir, err)
	}
	lock, lockErr := datadir.Acquire(cfg.DataDir, datadir.Command)
	if errors.Is(lockErr, datadir.ErrInUse) {
		return nil, "", nil, cli.DirInUse(to, err)
	}
	if lockErr != nil {
		return nil, "", nil, lockErr
	}
	turns, err := service.OpenLedger(cfg.DataDir, cfg.RemoteMemory())
	if err != nil {
		return nil, "", nil, errors.Join(err, lock.Unlock())
	}
	stopped := service.NewStoppedQueue(capture.NewOffline(turns))
	return stopped, inFiles(cfg), func() error { return errors.Join(stopped.Close(), lock.Unlock()) }, nil
}

// withQueue opens the queue for one command.
func withQueue(c *cobra.Command, f func(context.Context, queue) error) (err error) {
	cfg, err := cli.LoadConfig(c)
	if err != nil {
		return err
	}
	ctx := c.Context()
	q, where, closes, err := openQueue(ctx, cfg)
	if err != nil {
		return err
	}
	say(c, where)
	defer func() { err = errors.Join(err, closes()) }()
	return f(ctx, q)
}

func newQueueStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "status",
		Short:   "Count turns by state",
		Example: "  graphiti-proxy queue status --json | jq .pending",
		RunE: func(c *cobra.Command, _ []string) error {
			return withQueue(c, func(ctx context.Context, q queue) error {
				s, err := q.Counts(ctx)
				if err != nil {
					return err
				}
				return cli.Output(c, s, func(w io.Writer) { health.PrintQueue(w, &s) })
			})
		},
	}
	cli.JSONFlag(c)
	return c
}

func newQueueListCommand() *cobra.Command {
	var o ledger.ListOptions
	var state string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List undelivered turns, oldest first",
		Example: "  graphiti-proxy queue list --state dead --show-text",
		RunE: func(c *cobra.Command, _ []string) error {
			o.Condition = ledger.Condition(state)
			if err := service.CheckList(o); err != nil {
				return cli.Usage(fmt.Errorf("--%w", err))
			}
			return withQueue(c, func(ctx context.Context, q queue) error {
				l, err := q.List(ctx, o)
				if err != nil {
					return err
				}
				return cli.Output(c, l, func(w io.Writer) { cli.PrintTurns(w, l) })
			})
		},
	}
	f := c.Flags()
	f.StringVar(&state, "state", "", "only turns that are waiting, under-way or dead")
	cli.Complete(c, "state", "waiting", "under-way", "dead")
	f.StringVar(&o.Group, "group", "", "only turns for this group")
	f.IntVar(&o.Limit, "limit", 50, "list at most this many turns")
	f.BoolVar(&o.Text, "show-text", false, "also print what was said")
	cli.JSONFlag(c)
	return c
}

func newQueueChangeCommand(name, short, done string, do func(queue, context.Context, service.Selection) (service.Affected, error)) *cobra.Command {
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
			return withQueue(c, func(ctx context.Context, q queue) error {
				changed, err := do(q, ctx, service.Selection{Numbers: numbers, All: all})
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
					return fmt.Errorf("no refused turn has the number %d; see graphiti-proxy queue list --state dead", numbers[0])
				}
				return fmt.Errorf("%d of the %d numbers are of no refused turn; see graphiti-proxy queue list --state dead", len(numbers)-changed.Turns, len(numbers))
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all dead letters")
	cli.JSONFlag(c)
	return c
}
