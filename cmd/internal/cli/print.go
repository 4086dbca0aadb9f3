package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// PrintTurns prints the turns of a queue.
func PrintTurns(w io.Writer, list service.Listed) {
	if list.All == 0 {
		fmt.Fprintln(w, "no undelivered turns")
		return
	}
	var t terminal.Table
	t.Row("NUMBER", "STATE", "AGE", "ATTEMPTS", "GROUP", "REASON")
	for _, l := range list.Turns {
		t.Row(l.Number, l.Condition, time.Since(l.Since).Round(time.Second), l.Attempts, l.Group, l.Reason)
		for _, text := range []struct{ who, said string }{{"user", l.User}, {"assistant", l.Assistant}} {
			if text.said != "" {
				t.Row("", fmt.Sprintf("%s: %q", text.who, text.said))
			}
		}
	}
	t.Print(w)
	if list.All > len(list.Turns) {
		fmt.Fprintf(w, "… and %d more; list them with --limit\n", list.All-len(list.Turns))
	}
}

// PrintRepaired prints the result of a repair.
func PrintRepaired(w io.Writer, r *service.Repaired) {
	lost := slices.ContainsFunc(r.Tables, func(t sqlite.Saved) bool { return t.Lost })
	fmt.Fprintf(w, "%s: ", r.File)
	if !lost {
		fmt.Fprintln(w, "all data is readable")
	} else {
		fmt.Fprintln(w, "some data is lost")
	}
	for _, t := range r.Tables {
		line := fmt.Sprintf("  %-12s %s saved", t.Table, terminal.Count(t.Rows, "row"))
		if t.Lost {
			line += ", the others are unreadable"
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "  to use it: move %s away together with %s-wal and -shm, and rename %s to %s\n",
		r.File, filepath.Base(r.File), filepath.Base(r.New), strings.TrimSuffix(filepath.Base(r.New), ".repaired"))
}

// PrintGroups prints the groups that a command will forget.
func PrintGroups(w io.Writer, groups []ledger.Owned) {
	var t terminal.Table
	for _, g := range groups {
		note := ""
		if g.Session != "" {
			note = "only that conversation's messages"
		}
		if g.Shared {
			note = "not deleted: other people wrote to it too"
		}
		t.Row(g.Group, g.Scope, g.Key, note)
	}
	t.Print(w)
}
