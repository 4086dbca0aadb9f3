package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryWorkCommand() *cobra.Command {
	c, in := described("memory-work"), service.Work.Default
	cli.InputFlags(c, &in)
	return operation(c, service.Work, openMemoryFiles, &in, &in.Selector, func(w, errOut io.Writer, worked *service.Worked) {
		if len(worked.Passed)+len(worked.Cures)+len(worked.Found)+len(worked.Turns) == 0 {
			fmt.Fprintf(errOut, "no work of agents yet for %s\n", in.Whose())
			return
		}
		printLines(w, "commands that passed:", worked.Passed)
		printLines(w, "errors and their cures:", worked.Cures)
		printLines(w, "results of subagents:", worked.Found)
		for i := range worked.Turns {
			t := &worked.Turns[i]
			printLines(w, fmt.Sprintf("turn of %s in conversation %s:", minute(t.Time), t.Conversation), t.Lines)
		}
		printMore(w, worked.AllTurns-len(worked.Turns))
	})
}

// printLines prints a heading and lines with foreign text.
func printLines(w io.Writer, heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(w, heading)
	for _, l := range lines {
		fmt.Fprintln(w, "  "+terminal.Printable(l))
	}
}
