package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newQueueCommand() *cobra.Command {
	return describedGroup("queue",
		operation(described("queue-status"), service.Counts, openMemoryFiles, new(struct{}), nil, func(w, _ io.Writer, s *capture.QueueStatus) { health.PrintQueue(w, s) }),
		newQueueListCommand(),
		newQueueChangeCommand("retry", "queued again", service.Retry), newQueueChangeCommand("drop", "deleted", service.Drop))
}

func newQueueListCommand() *cobra.Command {
	c, in := described("queue-list"), service.Turns.Default
	cli.InputFlags(c, &in)
	cli.Complete(c, "state", "waiting", "under-way", "dead")
	return operation(c, service.Turns, openMemoryFiles, &in, nil, func(w, _ io.Writer, l *service.Listed) { cli.PrintTurns(w, *l) })
}

func newMemorySendCommand() *cobra.Command {
	c, in := described("memory-send"), service.SendRequest{}
	cli.InputFlags(c, &in)
	open := func(ctx context.Context, cfg *config.Config) (*cli.Runner, error) {
		if !cfg.RemoteMemory() {
			return nil, errors.New("no Graphiti: set memory.endpoint")
		}
		return openMemoryFiles(ctx, cfg)
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
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Runner) error {
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
