package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryShowCommand() *cobra.Command {
	c, in := described("memory-show"), service.ShowRequest{Last: 20}
	var held service.HeldRequest
	cli.InputFlags(c, &in)
	c.Flags().StringSliceVar(&held.Keep, "keep", nil, "store held messages, by their ids")
	c.Flags().StringSliceVar(&held.Drop, "drop", nil, "delete held messages, by their ids")
	operation(c, service.Show, openMemoryFiles, &in, &in.Selector, func(w, errOut io.Writer, answer *service.Shown) {
		if len(answer.Messages)+len(answer.Held) == 0 {
			fmt.Fprintf(errOut, "no memory yet for %s\n", in.Whose())
		}
		printMessages(w, errOut, &in.Selector, answer)
		printHeld(w, answer.Held)
	})
	show := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(held.Keep)+len(held.Drop) == 0 {
			return show(c, args)
		}
		return withPlace(openMemoryFiles, &in.Selector, func(c *cobra.Command, _ []string, at *cli.Runner) error {
			held.Selector = in.Selector
			return answer(c, at, service.SettleHeld, &held, nil, func(w, _ io.Writer, done *service.HeldSettled) {
				fmt.Fprintf(w, "%s stored, %s deleted\n", terminal.Count(len(done.Kept), "held message"), terminal.Count(len(done.Dropped), "held message"))
			})
		})(c, args)
	}
	return c
}

func printHeld(w io.Writer, held []service.HeldMessage) {
	if len(held) == 0 {
		return
	}
	fmt.Fprintln(w, "\nheld until their conversations show whether a person wrote them:")
	var t terminal.Table
	t.Row("ID", "SAID", "UNTIL", "REASON", "TEXT")
	for _, h := range held {
		t.Row(h.ID, minute(h.Time), minute(h.Until), h.Reason, h.Text)
	}
	t.Print(w)
	fmt.Fprintln(w, "to store one now: graphiti-proxy memory show --keep ID; to delete it: --drop ID")
}

func printMessages(w, errOut io.Writer, s *service.Selector, answer *service.Shown) {
	var t terminal.Table
	for _, said := range answer.Messages {
		role, text := said.Role, said.Text
		if cur, ok := graphiti.ParseCurated(text); ok {
			role, text = cur.Kind, cur.Text
		}
		if said.Ended != "" {
			role += " (ended)"
		}
		t.Row(said.ID, minute(said.Time), terminal.If(s.Own, whereKept[said.Scope]), role, text)
	}
	t.Print(w)
	for i, line := range answer.Card {
		if i == 0 {
			fmt.Fprintln(errOut, "\nthe card that opens new conversations, up to recall.card_chars characters:")
		}
		fmt.Fprintln(errOut, "  "+terminal.Printable(line))
	}
	if n := len(answer.Pending); n > 0 {
		fmt.Fprintf(errOut, "\n%s for your confirmation: graphiti-proxy memory pending lists them\n", terminal.Count(n, "line")+" waiting")
	}
}

// whereKept names the owner of a message in a list of several memories.
var whereKept = map[string]string{string(graphiti.ScopeWorkspace): "project", string(graphiti.ScopeUser): "you"}

// minute formats a time for people, to the minute, in their zone.
func minute(rfc3339 string) string {
	at, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		return rfc3339
	}
	return at.Local().Format("2006-01-02 15:04")
}

// sayWhose prints the memory in use if no flag selects one: on the output, or with --json
// on the error output.
func sayWhose(c *cobra.Command, s *service.Selector) {
	w := c.OutOrStdout()
	if cli.WantsJSON(c) {
		w = c.ErrOrStderr()
	}
	if s.Own || *s == (service.Selector{}) {
		fmt.Fprintln(w, meantHere(s))
	}
}

// meantHere returns the memory in use if no flag selects one, in words.
func meantHere(s *service.Selector) string {
	if !s.Own {
		return "your own memory"
	}
	return terminal.Printable("memory of "+service.Selector{Workspace: s.Workspace}.Whose()) + ", and your own"
}

func newMemorySearchCommand() *cobra.Command {
	in := service.Search.Default
	c := described("memory-search")
	c.Args = func(c *cobra.Command, args []string) error {
		for _, day := range []*string{&in.Since, &in.Until} {
			if at, err := service.DayOf(*day, day == &in.Until, time.Local); err == nil && *day != "" {
				*day = at.Format(time.RFC3339)
			}
		}
		if in.Query = strings.Join(args, " "); in.SearchFilter != (service.SearchFilter{}) {
			if in.Selector == (service.Selector{}) {
				in.User = "me" // not only the current directory
			}
			return nil
		}
		return cli.Needs("the text of a message")(c, args)
	}
	cli.InputFlags(c, &in)
	cli.Complete(c, "speaker", "person", "model")
	cli.Complete(c, "kind", service.Kinds...)
	cli.Complete(c, "state", service.States...)
	return operation(c, service.Search, openMemoryFiles, &in, &in.Selector, func(w, errOut io.Writer, answer *service.Searched) {
		if answer.ByWords {
			fmt.Fprintln(errOut, "only words were searched: the search by meaning is not ready yet; search again in a few seconds")
		}
		switch {
		case len(answer.Facts) == 0 && !in.Everything:
			fmt.Fprintln(errOut, "no facts found; --everything searches all projects")
		case len(answer.Facts) == 0:
			fmt.Fprintln(errOut, "no facts found")
		case in.SearchFilter != (service.SearchFilter{}):
			printHits(w, answer)
		default:
			printFound(w, errOut, answer, in.All)
		}
	})
}

// printHits prints the results of a search with a filter.
func printHits(w io.Writer, answer *service.Searched) {
	var t terminal.Table
	t.Row("ID", "TIME", "KIND", "STATE", "BY", "CLIENT", "IN", "TEXT")
	for _, f := range answer.Facts {
		kind := strings.ReplaceAll(cmp.Or(f.Origin, f.Kind), "_", " ")
		if f.ByMeaning {
			kind += ", by meaning"
		}
		if f.Said > 0 {
			kind += map[bool]string{true: ", in at least ", false: ", in "}[f.AtLeast] + terminal.Count(f.Said, "conversation")
		}
		if f.Episode != "" {
			f.Text += "; from Graphiti's episode " + f.Episode
		}
		by := cmp.Or(map[string]string{"user": "person", "system": "person", "assistant": "model"}[f.Role], "-")
		t.Row(cmp.Or(f.ID, "-"), minute(f.Since), kind, f.State, by, cmp.Or(f.Client, "-"), f.In, f.Text)
	}
	t.Print(w)
	printMore(w, answer.All-len(answer.Facts))
}

func printFound(w, errOut io.Writer, answer *service.Searched, explain bool) {
	var t terminal.Table
	t.Row("ID", "VERDICT", terminal.If(explain, "STRENGTH"), "SCOPE", "FACT")
	hint := ""
	for _, f := range answer.Facts {
		id, strength := "-", "-" // forget knows no ID of Graphiti's
		if _, ok := graphiti.ParseID(f.ID); ok {
			id, hint = f.ID, "forget one: graphiti-proxy memory forget --message ID\n"
		}
		if f.Strength != nil {
			strength = fmt.Sprintf("%.2f", *f.Strength)
		}
		text := f.Text
		if len(f.Keys) > 0 {
			text += "; keys: " + strings.Join(f.Keys, ", ")
		}
		t.Row(id, f.Verdict, terminal.If(explain, strength), f.Scope, text)
	}
	t.Print(w)
	if explain {
		fmt.Fprintln(w, answer.Threshold())
	}
	fmt.Fprint(errOut, hint)
}

func newMemoryPromoteCommand() *cobra.Command {
	var in service.PromoteRequest
	c := described("memory-promote")
	c.Args = func(c *cobra.Command, args []string) error {
		in.Text = strings.Join(args, " ")
		return cli.Needs("the text to store")(c, args)
	}
	cli.InputFlags(c, &in)
	c.Flags().StringVar(&in.Kind, "kind", "", "required: one of "+strings.Join(graphiti.Kinds, ", "))
	cli.Complete(c, "kind", graphiti.Kinds...)
	cli.Complete(c, "scope", "user", "workspace", "session", "agent")
	return operation(c, service.Promote, makeMemoryFiles, &in, nil, func(w, _ io.Writer, answer *service.Promoted) {
		fmt.Fprintf(w, "stored as %s for %s\n", in.Kind, terminal.Printable(answer.For))
	})
}

func newMemoryCorrectCommand() *cobra.Command {
	var in service.CorrectRequest
	c := described("memory-correct")
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return cli.Usage(errors.New("write the id of a message from memory show, and the corrected text"))
		}
		in.Message, in.Text = args[0], strings.Join(args[1:], " ")
		return nil
	}
	cli.InputFlags(c, &in)
	return operation(c, service.Correct, openMemoryFiles, &in, nil, func(w, _ io.Writer, done *service.Corrected) {
		if !in.Now {
			fmt.Fprintln(w, "stored; ended:", messageGone(&done.Forgotten))
			printUndo(w, done.Undo)
			return
		}
		fmt.Fprintln(w, "stored; forgotten:", messageGone(&done.Forgotten))
		if done.Remaining != "" {
			fmt.Fprintln(w, "the old statement:", done.Remaining)
		}
	})
}
