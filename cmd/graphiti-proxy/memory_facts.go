package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryFactsCommand() *cobra.Command {
	var all bool
	var limit int
	c := &cobra.Command{
		Use:   "facts",
		Short: "List what is known and valid now",
		Long: "List what is known and valid now: first promoted texts, such as decisions and\n" +
			"preferences, then facts that a model or Graphiti has read from messages, then what people said\n" +
			"and not only asked; of each the newest first. Called in a project, a git\n" +
			"repository, it lists the project's and your own; elsewhere your own.\n\n" +
			"--all also lists what is not valid now, and why: superseded is what was said again\n" +
			"later in the same words, and what Graphiti knows not to be true any more; expired is\n" +
			"what Graphiti has withdrawn; ended is what you ended with \"forget that …\": memory\n" +
			"restore makes it valid again. What two statements say of one thing in different words\n" +
			"is weighed when it is searched: the embedded memory lists both.\n\n" +
			"Graphiti has no listing of facts: those are listed that a search for the newest\n" +
			"messages finds.",
		Example: "  graphiti-proxy memory facts\n  graphiti-proxy memory facts --all --workspace .",
	}
	s := selectorFlags(c)
	c.Flags().BoolVar(&all, "all", false, "also list what is superseded, expired or ended")
	c.Flags().IntVar(&limit, "limit", 50, "how many")
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, s, func(c *cobra.Command, _ []string, at *cli.Place) error {
		if err := service.CheckLimit(limit); err != nil {
			return cli.Usage(fmt.Errorf("--%w", err))
		}
		answer, err := cli.Call(c.Context(), at, service.Facts, service.FactsRequest{Selector: *s, All: all, Limit: limit})
		if err != nil {
			return err
		}
		sayWhose(c, s)
		return cli.Output(c, answer, func(w io.Writer) { printValid(w, c.ErrOrStderr(), s, &answer, all) })
	})
	return c
}

func printValid(w, errOut io.Writer, s *service.Selector, answer *service.Valids, all bool) {
	if answer.Note != "" {
		fmt.Fprintln(errOut, answer.Note)
	}
	hintAt(errOut, s, answer.Others)
	for _, group := range answer.Unlisted {
		unlisted := &graphiti.UnlistedError{Group: group}
		fmt.Fprintf(errOut, "%s: %v; to do: %s\n", group, unlisted, graphiti.Remedy(unlisted))
	}
	if len(answer.Facts) == 0 {
		if len(answer.Unlisted) == 0 {
			fmt.Fprintf(errOut, "nothing is known yet for %s\n", s.Whose())
		}
		return
	}
	t := terminal.Table(w)
	fmt.Fprint(t, "ID\tSINCE\t")
	if all {
		fmt.Fprint(t, "UNTIL\tSTATE\t")
	}
	fmt.Fprintln(t, "SCOPE\tKIND\tTEXT")
	for _, k := range answer.Facts {
		fmt.Fprintf(t, "%s\t%s\t", cmp.Or(k.ID, "-"), minute(k.Since))
		if all {
			fmt.Fprintf(t, "%s\t%s\t", minute(k.Until), k.State)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", k.Scope, terminal.Printable(strings.ReplaceAll(k.Kind, "_", " ")), terminal.Row(w, k.Text, 200))
	}
	_ = t.Flush()
	if more := answer.AllFacts - len(answer.Facts); answer.AtMost {
		fmt.Fprintf(w, "… and at most %d more; list them with --limit\n", more)
	} else {
		printMore(w, more)
	}
}
