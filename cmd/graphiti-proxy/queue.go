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
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newQueueCommand() *cobra.Command {
	return describedGroup("queue", newQueueStatusCommand(), newQueueListCommand(),
		newQueueChangeCommand("retry", "queued again", service.Retry), newQueueChangeCommand("drop", "deleted", service.Drop))
}

// openQueueFiles opens the queue of a proxy that does not run, in its data directory. It
// delivers nothing.
func openQueueFiles(_ context.Context, cfg *config.Config, found error) (*cli.Runner, error) {
	if err := misnamed(cfg); err != nil {
		return nil, err
	}
	if cfg.State.Backend == "postgres" { // shared by replicas
		server, err := openPostgres(cfg, func() *config.Config { return cfg }, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		e := embedded.OpenShared(server.DB(false))
		return queuePlace(capture.NewOffline(e.Ledger(nil)), "using the queue in Postgres: no running proxy was found", server.Close), nil
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
	queue, err := service.OpenQueue(cfg.DataDir)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return queuePlace(queue, inFiles(cfg), lock.Unlock), nil
}

func queuePlace(q *capture.Offline, says string, then func() error) *cli.Runner {
	return &cli.Runner{
		Host:  &service.Host{Queue: q, Counts: q.Status},
		Says:  says,
		Close: func() error { return errors.Join(q.Close(), then()) },
	}
}

func newQueueStatusCommand() *cobra.Command {
	return operation(described("queue-status"), service.Counts, openQueueFiles, new(struct{}), nil, func(w, _ io.Writer, s *capture.QueueStatus) { health.PrintQueue(w, s) })
}

func newQueueListCommand() *cobra.Command {
	c, in := described("queue-list"), service.Turns.Default
	cli.InputFlags(c, &in)
	cli.Complete(c, "state", "waiting", "under-way", "dead")
	return operation(c, service.Turns, openQueueFiles, &in, nil, func(w, _ io.Writer, l *service.Listed) { cli.PrintTurns(w, *l) })
}

func newMemorySendCommand() *cobra.Command {
	c, in := described("memory-send"), service.SendRequest{}
	cli.InputFlags(c, &in)
	open := func(ctx context.Context, cfg *config.Config, found error) (*cli.Runner, error) {
		if !cfg.RemoteMemory() {
			return nil, errors.New("no Graphiti: set memory.endpoint")
		}
		return openQueueFiles(ctx, cfg, found)
	}
	return operation(c, service.Send, open, &in, nil, func(w, _ io.Writer, sent *service.Affected) {
		note := ""
		if sent.Turns == 0 {
			note = ": Graphiti has all turns since then, or no Graphiti is connected"
		}
		fmt.Fprintf(w, "%s queued for Graphiti%s\n", terminal.Count(sent.Turns, "turn"), note)
	})
}

func newQueueChangeCommand(name, done string, op service.Operation[service.Selection, service.Affected]) *cobra.Command {
	c, in := described("queue-"+name), service.Selection{}
	cli.InputFlags(c, &in)
	cli.JSONFlag(c)
	c.Args = func(_ *cobra.Command, args []string) error {
		if in.All == (len(args) > 0) {
			return cli.Usage(errors.New("give the numbers of dead letters (see graphiti-proxy queue list --state dead), or --all"))
		}
		for _, a := range args {
			n, err := strconv.ParseInt(a, 10, 64)
			if err != nil || n < 1 {
				return cli.Usage(fmt.Errorf("%q is not the number of a dead letter; see graphiti-proxy queue list --state dead", a))
			}
			in.Numbers = append(in.Numbers, n)
		}
		return nil
	}
	c.RunE = withPlace(openQueueFiles, nil, func(c *cobra.Command, _ []string, at *cli.Runner) error {
		changed, err := cli.Call(c.Context(), at, op, in)
		if err == nil && (changed.Turns > 0 || in.All) {
			err = cli.Output(c, changed, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", terminal.Count(changed.Turns, "turn"), done) })
		}
		switch missing := len(in.Numbers) - changed.Turns; {
		case err != nil || missing <= 0:
			return err
		case len(in.Numbers) == 1:
			return fmt.Errorf("no dead letter has the number %d; see graphiti-proxy queue list --state dead", in.Numbers[0])
		default:
			return fmt.Errorf("%d of the %d numbers match no dead letter; see graphiti-proxy queue list --state dead", missing, len(in.Numbers))
		}
	})
	return c
}
