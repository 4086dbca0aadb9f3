package main

import (
	"cmp"
	"errors"
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
	var all, acceptAll, rejectAll bool
	c := &cobra.Command{
		Use:   "pending",
		Short: "List, accept or reject the rules and facts that wait for your confirmation",
		Long: "List the rules and facts that wait for your confirmation, by their place. Until\n" +
			"you accept one, it has no effect outside of that place. HERE shows its effect\n" +
			"there: a rule opens conversations there if it is the whole message; a rule within\n" +
			"other text does not, because it may be another author's. A fact is recalled there\n" +
			"if it matches. IF ACCEPTED shows its reach after acceptance.\n\n" +
			"--accept, --reject and --undo take one or several IDs. --undo reverts the last\n" +
			"decision on them.",
		Example: "  graphiti-proxy memory pending\n  graphiti-proxy memory pending --accept 3fa9c1d20b7e\n  graphiti-proxy memory pending --reject 3fa9c1d20b7e 77ab01c9de42\n" +
			"  graphiti-proxy memory pending --accept-all\n  graphiti-proxy memory pending --undo 3fa9c1d20b7e\n  graphiti-proxy memory pending --all",
	}
	s := selectorFlags(c)
	f := c.Flags()
	f.StringSliceVar(&in.Accept, "accept", nil, "accept these lines")
	f.BoolVar(&acceptAll, "accept-all", false, "accept all waiting lines")
	f.StringSliceVar(&in.Reject, "reject", nil, "reject these lines")
	f.BoolVar(&rejectAll, "reject-all", false, "reject all waiting lines")
	f.StringSliceVar(&in.Undo, "undo", nil, "revert the last decision on these lines")
	f.BoolVar(&all, "all", false, "also list other lines, with their state")
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
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Place) error {
		in.Selector = *s
		if len(in.Accept)+len(in.Reject)+len(in.Undo) > 0 {
			return settle(c, at, &in)
		}
		answer, err := cli.Call(c.Context(), at, service.Pending, service.PendingRequest{Selector: *s, All: all})
		if err != nil {
			return err
		}
		return cli.Output(c, answer, func(w io.Writer) { printStanding(w, answer.Lines, all) })
	})
	return c
}

// decided checks that the flags contain at most one decision, and adds the ids after its
// first one.
func decided(c *cobra.Command, in *service.SettleRequest, args []string) error {
	var chosen []string
	for _, name := range []string{"accept", "accept-all", "reject", "reject-all", "undo", "all"} {
		if c.Flags().Changed(name) {
			chosen = append(chosen, name)
		}
	}
	if len(chosen) > 1 {
		return fmt.Errorf("--%s and --%s: write only one of them", chosen[0], chosen[1])
	}
	takes := map[string]*[]string{"accept": &in.Accept, "reject": &in.Reject, "undo": &in.Undo}
	if len(chosen) == 0 || takes[chosen[0]] == nil {
		if len(args) > 0 {
			return fmt.Errorf("%q: write --accept, --reject or --undo before ids, and nothing else", args[0])
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

func settle(c *cobra.Command, at *cli.Place, in *service.SettleRequest) error {
	done, err := cli.Call(c.Context(), at, service.Settle, *in)
	if err != nil {
		return err
	}
	return cli.Output(c, done, func(w io.Writer) {
		if len(done.Lines) == 0 {
			fmt.Fprintln(w, "no line waits for your confirmation; no change made")
			return
		}
		var ids []string
		for i := range done.Lines {
			l := &done.Lines[i]
			ids = append(ids, l.ID)
			fmt.Fprintf(w, "%s: %s\n", became[l.State], terminal.Row(w, l.Text, 120))
		}
		if len(in.Undo) == 0 {
			fmt.Fprintf(w, "to undo it: graphiti-proxy memory pending --undo %s\n", strings.Join(ids, " "))
		}
	})
}

// became describes the result of a decision on a line.
var became = map[card.State]string{
	card.Pending: "waits again", card.Local: "counts in its place again", card.Confirmed: "accepted", card.Rejected: "rejected", card.Ended: "ended", card.Superseded: "superseded",
}

// printStanding lists lines by the place of their message.
func printStanding(w io.Writer, lines []service.Standing, all bool) {
	if len(lines) == 0 {
		fmt.Fprintln(w, map[bool]string{true: "you have not asked for any rule or fact to be remembered", false: "no line waits for your confirmation"}[all])
		return
	}
	var places []string
	of := make(map[string][]service.Standing)
	waiting := 0
	for _, l := range lines {
		if of[l.Place] == nil {
			places = append(places, l.Place)
		}
		of[l.Place] = append(of[l.Place], l)
		if l.State == card.Pending {
			waiting++
		}
	}
	t := terminal.Table(w)
	for n, place := range places {
		if n > 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "said %s\n", terminal.Printable(cmp.Or(place, "in no conversation: promoted by hand, or imported")))
		fmt.Fprintln(t, "  ID\tSINCE\tKIND\tHERE\tIF ACCEPTED\t"+map[bool]string{true: "STATE\t"}[all]+"TEXT")
		for _, l := range of[place] {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t", l.ID, minute(l.Since), strings.ReplaceAll(l.Kind, "_", " "), l.Here(), l.Accepted())
			if all {
				fmt.Fprintf(t, "%s\t", l.State)
			}
			fmt.Fprintln(t, terminal.Row(w, l.Text, 120))
		}
	}
	_ = t.Flush()
	if waiting > 0 {
		fmt.Fprintln(w, "\nto accept one: graphiti-proxy memory pending --accept ID; all of them: --accept-all; to reject: --reject ID")
	}
}

func newMemoryRestoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "restore --message <id>",
		Short: "Make a message valid again that \"forget that …\" ended",
		Long: "Make a message valid again that you ended in a conversation with \"forget that …\",\n" +
			"and the rule that ended with it. memory facts --all prints the ids of ended messages.",
		Example: "  graphiti-proxy memory facts --all\n  graphiti-proxy memory restore --message 3fa9c1d20b7e",
	}
	s := selectorFlags(c)
	c.Flags().Var(cli.Text(&s.Message), "message", "the id of the message")
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Place) error {
		if s.Message == "" {
			return cli.Usage(errors.New("--message is required: write the id of an ended message from memory facts --all"))
		}
		done, err := cli.Call(c.Context(), at, service.Restore, service.RestoreRequest{Selector: *s})
		if err != nil {
			return err
		}
		return cli.Output(c, done, func(w io.Writer) {
			fmt.Fprintf(w, "valid again: message %s in %s\n", done.Message, terminal.Count(len(done.Groups), "group"))
		})
	})
	return c
}
