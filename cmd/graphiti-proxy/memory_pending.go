package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryPendingCommand() *cobra.Command {
	var in service.SettleRequest
	var acceptAll, rejectAll bool
	c := described("memory-pending")
	listed := service.PendingRequest{}
	cli.InputFlags(c, &in, service.Pending.Without...)
	c.Flags().BoolVar(&listed.All, "all", false, "also list other lines, with their state")
	c.Flags().BoolVar(&acceptAll, "accept-all", false, "accept all waiting lines")
	c.Flags().BoolVar(&rejectAll, "reject-all", false, "reject all waiting lines")
	cli.JSONFlag(c)
	c.Args = func(c *cobra.Command, args []string) error {
		if err := decided(c, &in, args); err != nil {
			return cli.Usage(err)
		}
		if acceptAll {
			in.Accept = []string{"all"}
		}
		if rejectAll {
			in.Reject = []string{"all"}
		}
		return nil
	}
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Runner) error {
		if len(in.Accept)+len(in.Reject)+len(in.End) > 0 {
			return answer(c, at, service.Settle, &in, nil, func(w, _ io.Writer, done *service.Settled) {
				if len(done.Lines) == 0 {
					fmt.Fprintln(w, "no line waits for your confirmation; no change made")
				}
				for _, l := range done.Lines {
					became := string(l.State)
					if l.State == card.Confirmed {
						became = "accepted"
					} else if in.To != "" {
						became = "limited to " + in.To
					}
					fmt.Fprintf(w, "%s: %s\n", became, terminal.Row(w, l.Text, 120))
				}
				printUndo(w, done.Undo)
			})
		}
		listed.Selector = in.Selector
		return answer(c, at, service.Pending, &listed, nil, func(w, _ io.Writer, p *service.PendingLines) { printStanding(w, p, listed.All) })
	})
	return c
}

// decided checks that the flags contain at most one decision, and adds the ids after its
// first one.
func decided(c *cobra.Command, in *service.SettleRequest, args []string) error {
	var chosen []string
	for _, name := range []string{"accept", "accept-all", "reject", "reject-all", "end", "all"} {
		if c.Flags().Changed(name) {
			chosen = append(chosen, name)
		}
	}
	if len(chosen) > 1 {
		return fmt.Errorf("--%s and --%s: write only one of them", chosen[0], chosen[1])
	}
	takes := map[string]*[]string{"accept": &in.Accept, "reject": &in.Reject, "end": &in.End}
	if len(chosen) == 0 || takes[chosen[0]] == nil {
		if len(args) > 0 {
			return fmt.Errorf("%q: write --accept, --reject or --end before ids, and nothing else", args[0])
		}
		return nil
	}
	ids := takes[chosen[0]]
	*ids = slices.DeleteFunc(append(*ids, args...), func(id string) bool { return strings.TrimSpace(id) == "" })
	if len(*ids) == 0 {
		return fmt.Errorf("--%s: write one or several ids from memory pending", chosen[0])
	}
	return nil
}

// printStanding lists lines, with the statements that they end.
func printStanding(w io.Writer, p *service.PendingLines, all bool) {
	if len(p.Lines) == 0 {
		fmt.Fprintln(w, map[bool]string{true: "you have not asked for any rule or fact to be remembered", false: "no line waits for your confirmation"}[all])
		return
	}
	var t terminal.Table
	t.Row("ID", "SINCE", "KIND", "SAID", "HERE", "IF ACCEPTED", terminal.If(all, "STATE"), "TEXT")
	for _, l := range p.Lines {
		t.Row(l.ID, minute(l.Since), strings.ReplaceAll(l.Kind, "_", " "), cmp.Or(l.Place, "by hand, or imported"), l.Here(), l.Accepted(), terminal.If(all, l.State), l.Text)
	}
	t.Print(w)
	for _, l := range p.Lines {
		for _, text := range l.Ends {
			fmt.Fprintf(w, "%s ends: %s\n", l.ID, terminal.Row(w, text, 120))
		}
	}
	if slices.ContainsFunc(p.Lines, func(l service.Standing) bool { return l.State == card.Pending }) {
		fmt.Fprintln(w, "\nto accept one: graphiti-proxy memory pending --accept ID; all of them: --accept-all; to reject: --reject ID")
	}
	if p.Full {
		fmt.Fprintln(w, "the list is full, and no further line can wait: accept or reject some; all of them: --reject-all")
	}
}

// newManyCommand returns a command that changes messages and deletes none.
func newManyCommand(do, done string) *cobra.Command {
	c, in, ids := described("memory-"+do), service.ManyRequest{Do: do}, []string(nil)
	without := service.ChangeMany.Without
	if do != "move" {
		without = append([]string{"to"}, without...)
	}
	cli.InputFlags(c, &in, without...)
	c.Flags().StringSliceVar(&ids, "message", nil, "the id of a message")
	c.Args = func(c *cobra.Command, args []string) error {
		in.Messages = append(ids, args...)
		return cli.Needs("the ids of messages from memory show or memory facts --all")(c, in.Messages)
	}
	return operation(c, service.ChangeMany, openMemoryFiles, &in, nil, func(w, _ io.Writer, out *service.Many) {
		fmt.Fprintf(w, "%s: %s in %s\n", done, terminal.Count(out.Messages, "message"), terminal.Count(len(out.Groups), "group"))
		printUndo(w, out.Undo)
	})
}

func printUndo(w io.Writer, id string) {
	if id != "" {
		fmt.Fprintln(w, "to undo it within thirty days: graphiti-proxy memory undo "+id)
	}
}

func newMemoryUndoCommand() *cobra.Command {
	c, in, now := described("memory-undo"), service.HistoryRequest{Limit: 50}, false
	cli.InputFlags(c, &in, service.History.Without...)
	cli.JSONFlag(c)
	c.Flags().BoolVar(&now, "delete", false, "delete the copy of a forget now, for good, instead of restoring it")
	c.Args = cobra.MaximumNArgs(1)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, args []string, at *cli.Runner) error {
		if len(args) > 0 {
			return answer(c, at, service.Undo, &service.UndoRequest{Selector: in.Selector, ID: args[0], Delete: now}, nil, func(w, _ io.Writer, done *service.Change) {
				fmt.Fprintf(w, "%s: %s of %s\n", map[bool]string{false: "undone", true: "deleted for good"}[now], done.What, minute(done.Time))
			})
		}
		return answer(c, at, service.History, &in, nil, func(w, _ io.Writer, out *service.Changes) {
			var t terminal.Table
			t.Row("ID", "TIME", "CHANGE", "BY", "UNDO", "BEFORE", "AFTER")
			for i := range out.Changes {
				one := &out.Changes[i]
				before, after := one.Texts()
				undo := map[bool]string{true: "yes", false: "no"}[one.Reverts()]
				if one.Undone != "" {
					undo = "undone"
				}
				t.Row(one.ID, minute(one.Time), one.What, one.By, undo, strings.Join(before, " · "), cmp.Or(strings.Join(after, " · "), one.Import, one.Of))
			}
			t.Print(w)
			printMore(w, out.All-len(out.Changes))
		})
	})
	return c
}
