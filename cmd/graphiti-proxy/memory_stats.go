package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryStatsCommand() *cobra.Command {
	var s service.Selector
	c := &cobra.Command{
		Use:   "stats",
		Short: "Count what memory did in the last seven days",
		Long: "Count what memory did in the last seven days, by days of UTC: conversations and turns\n" +
			"that were kept of yours, by when they were said; blocks that were shown, with their\n" +
			"characters, and turns without one, by reason. Graphiti's MCP server dates a message by\n" +
			"its arrival. Blocks are counted of everybody, once\n" +
			"each, though a conversation repeats them in every request; decisions that are older\n" +
			"than recall.sticky_ttl are deleted. What was forgotten is not counted as kept.\n\n" +
			"Through a proxy that runs, it also counts the requests since that started.",
		Example: "  graphiti-proxy memory stats\n  graphiti-proxy memory stats --json",
	}
	c.Flags().Var(cli.Text(&s.User), "user", "a person: me, josh, github_login:octocat, discord:123")
	c.Flags().Var(cli.Text(&s.Credential), "credential", "sha256:<hex> of a credential, in identity.mode multi")
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Place) error {
		week, err := cli.Call(c.Context(), at, service.Stats, s)
		if err != nil {
			return err
		}
		return cli.Output(c, week, func(w io.Writer) { printWeek(w, c.ErrOrStderr(), &week) })
	})
	return c
}

func printWeek(w, errOut io.Writer, week *service.Week) {
	for _, note := range week.Notes {
		fmt.Fprintln(errOut, terminal.Printable(note))
	}
	t := terminal.Table(w)
	fmt.Fprintln(t, "DAY\tCONVERSATIONS\tTURNS KEPT\tBLOCKS SHOWN\tCHARACTERS\tSILENT")
	row := func(name string, f *service.Figures) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\n", name, f.Conversations, f.Turns, f.Blocks, f.Chars, f.Silent)
	}
	for i := range week.Days {
		row(week.Days[i].Date, &week.Days[i].Figures)
	}
	row("seven days", &week.Week)
	_ = t.Flush()
	if week.Week.Gone > 0 {
		fmt.Fprintf(w, "of the blocks shown, emptied by a forget since: %d\n", week.Week.Gone)
	}
	if len(week.Silent) > 0 {
		fmt.Fprintf(w, "silent, by reason: %s\n", counts(week.Silent))
	}
	if len(week.Outcomes) > 0 {
		fmt.Fprintf(w, "requests since the proxy started, %s: %s\n", minute(week.Started), counts(week.Outcomes))
	}
}

// counts prints counts by name, the highest first.
func counts[N int | int64](of map[string]N) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, of[name])
	}
	return strings.Join(names, ", ")
}
