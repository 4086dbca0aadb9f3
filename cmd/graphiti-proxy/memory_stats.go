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
		Short: "Count the work of memory in the last seven days",
		Long: "Count the work of memory in the last seven days, by UTC day: stored conversations\n" +
			"and turns, by message time; newly inserted blocks, with their characters and\n" +
			"approximate tokens; turns without a block, by reason; requests that may have had\n" +
			"memory, and their waiting time; and the tokens of requests and of prompt caches,\n" +
			"as reported by providers. It counts all people, or only the one given by --user.\n" +
			"Graphiti's MCP server dates a message by its arrival. Forgotten data is not\n" +
			"counted.\n\n" +
			"Through a running proxy, it also counts the requests since the proxy started.",
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
		fmt.Fprintf(w, "tokens of requests, reported by providers: %d, of them cached: %d (%.0f%%)\n", f.Input, f.Cached, 100*float64(f.Cached)/float64(f.Input))
	}
	if len(week.Silent) > 0 {
		fmt.Fprintf(w, "silent, by reason: %s\n", counts(week.Silent))
	}
	if len(week.Lost) > 0 {
		fmt.Fprintf(w, "answers not stored, by reason: %s\n", counts(week.Lost))
	}
	if week.Shortened > 0 {
		fmt.Fprintf(w, "texts shortened in the middle since the proxy started: %d\n", week.Shortened)
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
