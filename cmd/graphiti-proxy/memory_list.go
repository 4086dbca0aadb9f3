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
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryListCommand() *cobra.Command {
	c, in := described("memory-list"), service.List.Default
	cli.InputFlags(c, &in, "agent", "workspace", "session", "group")
	return operation(c, service.List, openMemoryFiles, &in, nil, func(w, errOut io.Writer, all *service.Catalog) { printCatalog(w, errOut, &in.Selector, all) })
}

func printCatalog(w, errOut io.Writer, s *service.Selector, all *service.Catalog) {
	if len(all.Memories)+len(all.Conversations) == 0 {
		fmt.Fprintf(errOut, "no memory yet for %s\n", s.Whose())
		return
	}
	var t terminal.Table
	t.Row("MEMORY", "KIND", "MESSAGES", "FIRST", "LAST")
	for _, k := range all.Memories {
		kind := cmp.Or(map[string]string{"user": "own", "workspace": "project"}[k.Scope], k.Scope, "-")
		if k.Shared {
			kind += ", shared"
		}
		t.Row(k.Name, kind, k.Messages, minute(k.First), minute(k.Last))
	}
	t.Print(w)
	printMore(w, all.AllMemories-len(all.Memories))
	if len(all.Conversations) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = terminal.Table{}
	t.Row("CONVERSATION", "IN", "MESSAGES", "FIRST", "LAST", "ID")
	for _, talk := range all.Conversations {
		t.Row(cmp.Or(talk.Begins, talk.Session, "-"), talk.In, talk.Messages, minute(talk.First), minute(talk.Last), talk.Hash)
	}
	t.Print(w)
	printMore(w, all.AllConversations-len(all.Conversations))
}

func printMore(w io.Writer, more int) {
	if more > 0 {
		fmt.Fprintf(w, "… and %d more; list them with --limit\n", more)
	}
}

func newMemoryFactsCommand() *cobra.Command {
	c, in := newMemoryFilterCommand("memory-facts", "facts", service.SearchFilter{Kind: service.KindFact, State: service.Valid, Newest: true}, "session")
	all := c.Flags().Bool("all", false, "also list facts that are not valid")
	c.PreRun = func(*cobra.Command, []string) {
		if *all {
			in.State = ""
		}
	}
	return c
}

func newMemoryWorkCommand() *cobra.Command {
	c, _ := newMemoryFilterCommand("memory-work", "work of agents", service.SearchFilter{Kind: graphiti.KindWork, Newest: true})
	return c
}

// newMemoryFilterCommand returns a command that lists the messages and facts of a filter, and its
// input. It has no flags for the fields of a selector named without.
func newMemoryFilterCommand(name, what string, filter service.SearchFilter, without ...string) (*cobra.Command, *service.SearchRequest) {
	c, in := described(name), service.Search.Default
	cli.InputFlags(c, &in.Selector, without...)
	c.Flags().IntVar(&in.Limit, "limit", in.Limit, "how many")
	in.SearchFilter = filter
	return operation(c, service.Search, openMemoryFiles, &in, &in.Selector, func(w, errOut io.Writer, answer *service.Searched) {
		if len(answer.Facts) == 0 {
			fmt.Fprintf(errOut, "no %s yet for %s\n", what, in.Whose())
			return
		}
		printHits(w, answer)
	}), &in
}

func newMemoryStatsCommand() *cobra.Command {
	var s service.Selector
	c := described("memory-stats")
	cli.InputFlags(c, &s, "agent", "workspace", "session", "group")
	only := c.Flags().Bool("proof", false, "show the comparison of proof mode")
	return operation(c, service.Stats, openMemoryFiles, &s, nil, func(w, errOut io.Writer, week *service.Week) {
		if *only {
			printProof(w, week.Proof)
		} else {
			printWeek(w, errOut, week)
		}
	})
}

func printProof(w io.Writer, r *proof.Report) {
	if r == nil {
		fmt.Fprintln(w, "proof mode is off; set proof, such as to 50%")
		return
	}
	fmt.Fprintf(w, "%s\n%.0f%% without memory: %s\n", r.Says, 100*r.Share, counts(r.Arms))
	for i := range r.Signals {
		s := &r.Signals[i]
		fmt.Fprintf(w, "%s: %.3f with memory, %.3f without; difference %.3f, from %.3f to %.3f\n", s.Name, s.Shown, s.Withheld, s.Difference, s.Low, s.High)
	}
}

func newMemoryRetentionCommand() *cobra.Command {
	var in service.RetentionRequest
	c := described("memory-retention")
	cli.InputFlags(c, &in)
	return operation(c, service.Retention, openMemoryFiles, &in, nil, func(w, _ io.Writer, e *service.Expiring) {
		if len(e.Groups) == 0 {
			fmt.Fprintln(w, "no message, fact or work is old enough to be deleted")
			return
		}
		var t terminal.Table
		t.Row("MEMORY", "MESSAGES", "FACTS", "WORK", "EFFECT")
		for _, g := range e.Groups {
			names := []string{g.Group}
			for _, o := range g.Owners {
				names = append(names, o.Owner, o.Key)
			}
			slices.Sort(names[1:])
			effect := "deleted within the hour"
			if g.Held {
				effect = "on hold"
			}
			t.Row(terminal.Printable(strings.Join(slices.Compact(names), " ")), g.Messages, g.Facts, g.Work, effect)
		}
		t.Print(w)
	})
}

func newMemoryLinkCommand() *cobra.Command {
	c := described("memory-link")
	in := selectorFlags(c)
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Runner) error {
		s, err := cli.Call(c.Context(), at, service.Status, service.StatusRequest{})
		if err != nil {
			return err
		}
		return answer(c, at, service.MakeLink, in, nil, func(w, _ io.Writer, l *service.Link) {
			fmt.Fprintln(w, s.Inspector+l.Path) // without a proxy, it failed
		})
	})
	return c
}

func printWeek(w, errOut io.Writer, week *service.Week) {
	for _, note := range week.Notes {
		fmt.Fprintln(errOut, terminal.Printable(note))
	}
	var t terminal.Table
	t.Row("DAY", "CONVERSATIONS", "TURNS KEPT", "BLOCKS SHOWN", "CHARACTERS", "TOKENS", "SILENT", "REQUESTS", "WAITED", "COST", "OF MEMORY")
	for _, day := range append(week.Days, service.Day{Date: "seven days", Figures: week.Week}) {
		t.Row(day.Date, day.Conversations, day.Turns, day.Blocks, day.Chars, day.Tokens, day.Silent, day.Requests, waited(&day.Figures), dollars(day.Cost.Total), dollars(day.Cost.Blocks+day.Cost.Distil))
	}
	t.Print(w)
	if week.Bill != "" {
		fmt.Fprintln(w, week.Bill)
	}
	if week.Proof != nil {
		fmt.Fprintln(w, "proof mode:", week.Proof.Says)
	}
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
}

// dollars returns a cost, or "-" if it is unknown.
func dollars(cost float64) string {
	if cost == 0 {
		return "-"
	}
	return fmt.Sprintf("$%.4f", cost)
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
