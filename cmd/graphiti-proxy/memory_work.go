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
		if len(worked.Turns) == 0 {
			fmt.Fprintf(errOut, "no work of agents yet for %s\n", in.Whose())
			return
		}
		for i := range worked.Turns {
			t := &worked.Turns[i]
			fmt.Fprintf(w, "turn of %s in conversation %s:\n", minute(t.Time), t.Conversation)
			for _, l := range t.Lines {
				fmt.Fprintln(w, "  "+terminal.Printable(l))
			}
		}
		printMore(w, worked.AllTurns-len(worked.Turns))
	})
}
