package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

func newQueueCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "queue",
		Short: "Look at the turns that wait for the memory, and at those it refused",
		Long: "Look at the turns that wait for the memory, and at those it refused.\n" +
			"The running proxy is asked; when none runs, its files are read.",
		Example: "  graphiti-proxy queue status\n  graphiti-proxy queue list --state dead\n  graphiti-proxy queue retry --all",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newQueueStatusCommand(), newQueueListCommand(),
		newQueueChangeCommand("retry", "Have turns delivered again that the memory refused", "retried", queue.Retry),
		newQueueChangeCommand("drop", "Remove turns for good that the memory refused", "dropped", queue.Drop))
	return c
}

// queue is the queue of a proxy, running or not.
type queue interface {
	admin.Queue
	Status(context.Context) (capture.QueueStatus, error)
	Close() error
}

// openQueue finds the running proxy's queue, else the one in the data
// directory.
func openQueue(ctx context.Context, cfg *config.Config) (queue, error) {
	at, err := findOwner(ctx, cfg)
	if err == nil || byAddress(cfg) || !errors.Is(err, errNoProxy) {
		return remoteQueue{ctx, at}, err
	}
	if cfg.State.Backend == "redis" {
		return openSharedQueue(cfg)
	}
	path := filepath.Join(cfg.DataDir, "spool.db")
	_, noFile := os.Stat(path)
	_, noLog := os.Stat(path + "-wal")
	if noFile != nil && noLog != nil {
		return nil, fmt.Errorf("%w; and there is no queue in %s", err, cfg.DataDir)
	}
	lock, lockErr := datadir.Acquire(cfg.DataDir)
	if errors.Is(lockErr, datadir.ErrInUse) {
		return nil, unreachable(cfg, err)
	}
	if lockErr != nil {
		return nil, lockErr
	}
	q, err := capture.OpenOffline(path)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return offlineQueue{q, lock.Unlock}, nil
}

// openSharedQueue finds what replicas share.
func openSharedQueue(cfg *config.Config) (queue, error) {
	db, err := openRedis(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return offlineQueue{capture.OpenShared(db), db.Close}, nil
}

type offlineQueue struct {
	*capture.Offline
	unlock func() error
}

func (q offlineQueue) Close() error { return errors.Join(q.Offline.Close(), q.unlock()) }

// remoteQueue is the queue of the running proxy.
type remoteQueue struct {
	ctx context.Context //nolint:containedctx // of one command
	cfg *config.Config
}

func (q remoteQueue) Status(ctx context.Context) (s capture.QueueStatus, err error) {
	return s, ask(ctx, q.cfg, http.MethodGet, "/api/v1/queue", nil, &s)
}

func (q remoteQueue) Letters(ctx context.Context, o ledger.ListOptions) ([]ledger.Item, int, error) {
	v := url.Values{"state": {string(o.Condition)}, "group": {o.Group}, "limit": {strconv.Itoa(o.Limit)}, "text": {strconv.FormatBool(o.Text)}}
	var l admin.Letters
	err := ask(ctx, q.cfg, http.MethodGet, "/api/v1/queue/turns?"+v.Encode(), nil, &l)
	return l.Turns, l.All, err
}

func (q remoteQueue) Retry(numbers []int64) (int, error) { return q.change("retry", numbers) }
func (q remoteQueue) Drop(numbers []int64) (int, error)  { return q.change("drop", numbers) }
func (q remoteQueue) Close() error                       { return nil }

func (q remoteQueue) change(what string, numbers []int64) (int, error) {
	var a admin.Affected
	err := ask(q.ctx, q.cfg, http.MethodPost, "/api/v1/queue/"+what, admin.Selection{Numbers: numbers, All: len(numbers) == 0}, &a)
	return a.Turns, err
}

// withQueue opens the queue for one command.
func withQueue(c *cobra.Command, f func(context.Context, queue) error) (err error) {
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	ctx := c.Context()
	q, err := openQueue(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	return f(ctx, q)
}

func newQueueStatusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "status",
		Short:   "Count the turns",
		Example: "  graphiti-proxy queue status --json | jq .pending",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withQueue(c, func(ctx context.Context, q queue) error {
				s, err := q.Status(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), s)
				}
				printQueue(c.OutOrStdout(), &s)
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printQueue(w io.Writer, q *capture.QueueStatus) {
	fmt.Fprintf(w, "turns     %d waiting, %d delivered (%d seen in the memory), %d dropped, %d refused\n",
		q.Pending, q.Delivered, q.Verified, q.Dropped, q.Dead)
	if q.UnderWay > 0 {
		fmt.Fprintf(w, "          %d of those waiting were accepted and are not there yet\n", q.UnderWay)
	}
	if q.Lost > 0 {
		fmt.Fprintf(w, "          %d were accepted, lost by the memory, and sent again\n", q.Lost)
	}
	if q.LeftOut > 0 {
		fmt.Fprintf(w, "          %d of histories were left out for now, because too many waited\n", q.LeftOut)
	}
	if q.GivenUp > 0 {
		fmt.Fprintf(w, "          %d answers were too many at once, or too large, to be read; their turns are not kept\n", q.GivenUp)
	}
	if q.Unkept != nil || q.NotKept > 0 {
		fmt.Fprintf(w, "          %d were lost because data_dir cannot be used, %d wait for it in memory\n", q.NotKept, q.InMemory)
	}
	if q.Oldest != nil {
		fmt.Fprintf(w, "          the oldest has waited for %s\n", time.Since(*q.Oldest).Round(time.Second))
	}
	if q.Failing != nil {
		fmt.Fprintf(w, "          delivery has failed for %s: %s\n", time.Since(*q.Failing).Round(time.Second), q.LastError)
		if q.Remedy != "" {
			fmt.Fprintf(w, "          to do: %s\n", q.Remedy)
		}
	}
	if q.Stalled != nil {
		fmt.Fprintf(w, "          the memory has kept nothing for %s, though it accepts: nothing is sent until it does\n", time.Since(*q.Stalled).Round(time.Second))
	}
	if q.Unlisted != nil {
		fmt.Fprintf(w, "          not verified by a listing for %s (%s): %s\n          to do: %s\n",
			time.Since(*q.Unlisted).Round(time.Second), q.Diagnosis, q.Diagnosis.Says(), q.Diagnosis.Remedy())
	}
	switch {
	case q.SharedDown != nil:
		fmt.Fprintf(w, "replicas  redis cannot be used for %s: %s\n          %s delivers meanwhile; %d turns wait in this replica's data_dir\n",
			time.Since(*q.SharedDown).Round(time.Second), q.SharedError, cmp.Or(q.Deliverer, "nobody"), q.Here)
	case q.Replica != "":
		fmt.Fprintf(w, "replicas  this is %s, %s delivers\n", q.Replica, cmp.Or(q.Deliverer, "none of them"))
	}
	if q.Dead > 0 {
		fmt.Fprintf(w, "          see those that were refused: graphiti-proxy queue list --state dead\n")
	}
}

func newQueueListCommand() *cobra.Command {
	var o ledger.ListOptions
	var state string
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List turns that are not delivered, the oldest first",
		Example: "  graphiti-proxy queue list --state dead --show-text",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Condition = ledger.Condition(state)
			switch o.Condition {
			case "", ledger.Waiting, ledger.UnderWay, ledger.Dead:
			default:
				return usageError{fmt.Errorf("--state %q is not one of %s, %s, %s", state, ledger.Waiting, ledger.UnderWay, ledger.Dead)}
			}
			if o.Limit < 1 || o.Limit > 1000 {
				return usageError{fmt.Errorf("--limit %d is not a number from 1 to 1000", o.Limit)}
			}
			return withQueue(c, func(ctx context.Context, q queue) error {
				list, all, err := q.Letters(ctx, o)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(c.OutOrStdout(), admin.Letters{All: all, Turns: list})
				}
				printLetters(c.OutOrStdout(), list, all)
				return nil
			})
		},
	}
	f := c.Flags()
	f.StringVar(&state, "state", "", "only those that are waiting, under-way or dead")
	f.StringVar(&o.Group, "group", "", "only those for this group")
	f.IntVar(&o.Limit, "limit", 50, "list at most this many")
	f.BoolVar(&o.Text, "show-text", false, "show what was said")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printLetters(w io.Writer, list []ledger.Item, all int) {
	if all == 0 {
		fmt.Fprintln(w, "nothing waits")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NUMBER\tSTATE\tAGE\tBYTES\tATTEMPTS\tGROUP\tREASON")
	for _, l := range list {
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%d\t%s\t%s\n", l.Number, l.Condition, time.Since(l.Since).Round(time.Second), l.Bytes, l.Attempts, printable(l.Group), printable(l.Reason))
		for _, text := range []struct{ who, said string }{{"user", l.User}, {"assistant", l.Assistant}} {
			if text.said != "" {
				fmt.Fprintf(t, "\t%s: %q\n", text.who, text.said)
			}
		}
	}
	_ = t.Flush()
	if all > len(list) {
		fmt.Fprintf(w, "… and %d more; see --limit\n", all-len(list))
	}
}

func newQueueChangeCommand(name, short, done string, do func(queue, []int64) (int, error)) *cobra.Command {
	var all, asJSON bool
	c := &cobra.Command{
		Use:     name + " [number…]",
		Short:   short,
		Example: fmt.Sprintf("  graphiti-proxy queue %s 17 18\n  graphiti-proxy queue %s --all", name, name),
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usageError{fmt.Errorf("name the turns by their numbers (see graphiti-proxy queue list --state dead), or write --all")}
			}
			var numbers []int64
			for _, a := range args {
				n, err := strconv.ParseInt(a, 10, 64)
				if err != nil || n < 1 {
					return usageError{fmt.Errorf("%q is not the number of a turn; see graphiti-proxy queue list --state dead", a)}
				}
				numbers = append(numbers, n)
			}
			return withQueue(c, func(_ context.Context, q queue) error {
				n, err := do(q, numbers)
				if err != nil {
					return err
				}
				if asJSON {
					err = printJSON(c.OutOrStdout(), admin.Affected{Turns: n})
				} else {
					_, err = fmt.Fprintf(c.OutOrStdout(), "%d turns %s\n", n, done)
				}
				if err != nil {
					return err
				}
				if n < len(numbers) {
					return fmt.Errorf("%d of the numbers are of no refused turn", len(numbers)-n)
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "all that were refused")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
