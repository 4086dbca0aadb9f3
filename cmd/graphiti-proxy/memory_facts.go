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
		Short: "List the facts that are valid now",
		Long: "List the facts that are valid now: first promoted texts, such as decisions and\n" +
			"preferences, then Graphiti's facts, then people's statements, each newest first.\n" +
			"In a project, a git repository, it lists the project's facts and your own;\n" +
			"elsewhere your own.\n\n" +
			"--all also lists invalid facts, and why: superseded facts were repeated later in\n" +
			"the same words, or contradicted according to Graphiti; expired facts were\n" +
			"withdrawn by Graphiti; ended facts were ended by your \"forget that …\", and memory\n" +
			"restore makes them valid again. The embedded memory lists both of two\n" +
			"contradicting statements, because only a search compares them.\n\n" +
			"Graphiti cannot list facts. With it, the list contains the search results for the\n" +
			"newest messages, and may be incomplete.",
		Example: "  graphiti-proxy memory facts\n  graphiti-proxy memory facts --all --workspace .",
	}
	s := selectorFlags(c)
	c.Flags().BoolVar(&all, "all", false, "also list superseded, expired and ended facts")
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
			fmt.Fprintf(errOut, "no facts yet for %s\n", s.Whose())
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
		fmt.Fprintf(w, "… and at most %d more; show them with --limit\n", more)
	} else {
		printMore(w, more)
	}
}
