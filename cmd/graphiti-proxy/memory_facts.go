package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryFactsCommand() *cobra.Command {
	c, in := described("memory-facts"), service.Facts.Default
	cli.InputFlags(c, &in)
	return operation(c, service.Facts, openMemoryFiles, &in, &in.Selector, func(w, errOut io.Writer, answer *service.Valids) {
		printNote(errOut, answer.Note)
		hintAt(errOut, &in.Selector, answer.Others)
		if len(answer.Facts) > 0 {
			printValid(w, answer, in.All)
		} else {
			fmt.Fprintf(errOut, "no facts yet for %s\n", in.Whose())
		}
	})
}

func printValid(w io.Writer, answer *service.Valids, all bool) {
	var t terminal.Table
	t.Row("ID", "SINCE", terminal.If(all, "UNTIL"), terminal.If(all, "STATE"), "SCOPE", "KIND", "TEXT")
	for _, k := range answer.Facts {
		t.Row(cmp.Or(k.ID, "-"), minute(k.Since), terminal.If(all, minute(k.Until)), terminal.If(all, k.State), k.Scope, strings.ReplaceAll(k.Kind, "_", " "), k.Text)
	}
	t.Print(w)
	if more := answer.AllFacts - len(answer.Facts); answer.AtMost {
		fmt.Fprintf(w, "… and at most %d more; show them with --limit\n", more)
	} else {
		printMore(w, more)
	}
}

// printNote prints the limits of a listing, if it has any.
func printNote(errOut io.Writer, note string) {
	if note != "" {
		fmt.Fprintln(errOut, note)
	}
}
