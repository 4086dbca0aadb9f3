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
			"that were kept, by when they were said; blocks that were shown for the first time, with\n" +
			"their characters and about how many tokens these are; turns without a block, by reason;\n" +
			"requests that may have had memory, and how long they waited for it; and the tokens of\n" +
			"requests and what of them came from prompt caches, as providers said it. It counts\n" +
			"everybody's, or one person's where you name them. Graphiti's MCP server dates a message\n" +
			"by its arrival. What was forgotten is not counted as kept.\n\n" +
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
	fmt.Fprintln(t, "DAY\tCONVERSATIONS\tTURNS KEPT\tBLOCKS SHOWN\tCHARACTERS\tTOKENS\tSILENT\tREQUESTS\tWAITED")
	row := func(name string, f *service.Figures) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", name, f.Conversations, f.Turns, f.Blocks, f.Chars, f.Tokens, f.Silent, f.Requests, waited(f))
	}
	for i := range week.Days {
		row(week.Days[i].Date, &week.Days[i].Figures)
	}
	row("seven days", &week.Week)
	_ = t.Flush()
	if f := &week.Week; f.Input > 0 {
		fmt.Fprintf(w, "tokens of requests, as providers said: %d, of them cached: %d (%.0f%%)\n", f.Input, f.Cached, 100*float64(f.Cached)/float64(f.Input))
	}
	if len(week.Silent) > 0 {
		fmt.Fprintf(w, "silent, by reason: %s\n", counts(week.Silent))
	}
	if len(week.Lost) > 0 {
		fmt.Fprintf(w, "answers not stored, by reason: %s\n", counts(week.Lost))
	}
	if week.Shortened > 0 {
		fmt.Fprintf(w, "long texts since the proxy started whose middle was left out: %d\n", week.Shortened)
	}
	if len(week.Outcomes) > 0 {
		fmt.Fprintf(w, "requests since the proxy started, %s: %s\n", minute(week.Started), counts(week.Outcomes))
	}
}

// waited returns the average wait of a request for memory.
func waited(f *service.Figures) string {
	if f.Requests == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms each", f.WaitedMs/float64(f.Requests))
}

// counts returns counts by name, the highest first.
func counts[N int | int64](of map[string]N) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, of[name])
	}
	return strings.Join(names, ", ")
}
