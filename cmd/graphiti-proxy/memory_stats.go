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
	c := described("memory-stats")
	cli.InputFlags(c, &s, "agent", "workspace", "session", "group")
	return operation(c, service.Stats, openMemoryFiles, &s, nil, printWeek)
}

func printWeek(w, errOut io.Writer, week *service.Week) {
	for _, note := range week.Notes {
		fmt.Fprintln(errOut, terminal.Printable(note))
	}
	var t terminal.Table
	t.Row("DAY", "CONVERSATIONS", "TURNS KEPT", "BLOCKS SHOWN", "CHARACTERS", "TOKENS", "SILENT", "REQUESTS", "WAITED")
	for _, day := range append(week.Days, service.Day{Date: "seven days", Figures: week.Week}) {
		t.Row(day.Date, day.Conversations, day.Turns, day.Blocks, day.Chars, day.Tokens, day.Silent, day.Requests, waited(&day.Figures))
	}
	t.Print(w)
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
