package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryShowCommand() *cobra.Command {
	var last int
	c := &cobra.Command{
		Use:   "show",
		Short: "Show the last stored messages",
		Long: "Show the last messages of a person, an agent, a project or a conversation. In a\n" +
			"project, a git repository, it shows the project's messages and your own; elsewhere\n" +
			"your own. Messages from a project are stored with that project. The first column\n" +
			"is the message's ID, for memory forget --message and memory correct.",
		Example: "  graphiti-proxy memory show\n  graphiti-proxy memory show --workspace . --last 10\n  graphiti-proxy memory show --workspace https://github.com/acme/widgets",
	}
	s := selectorFlags(c)
	c.Flags().IntVar(&last, "last", 20, "how many messages")
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, s, func(c *cobra.Command, _ []string, at *cli.Place) error {
		if err := service.CheckLast(last); err != nil {
			return cli.Usage(fmt.Errorf("--%w", err))
		}
		answer, err := cli.Call(c.Context(), at, service.Show, service.ShowRequest{Selector: *s, Last: last})
		if err != nil {
			return err
		}
		sayWhose(c, s)
		return cli.Output(c, answer, func(w io.Writer) {
			for _, group := range answer.Unlisted {
				unlisted := &graphiti.UnlistedError{Group: group}
				fmt.Fprintf(c.ErrOrStderr(), "%s: %v; to do: %s\n", group, unlisted, graphiti.Remedy(unlisted))
			}
			if len(answer.Messages) == 0 && len(answer.Unlisted) == 0 {
				fmt.Fprintf(c.ErrOrStderr(), "no memory yet for %s\n", s.Whose())
			}
			printMessages(w, c.ErrOrStderr(), s, &answer)
		})
	})
	return c
}

func printMessages(w, errOut io.Writer, s *service.Selector, answer *service.Shown) {
	hintAt(errOut, s, answer.Others)
	t := terminal.Table(w)
	for _, said := range answer.Messages {
		role, text := said.Role, said.Text
		if cur, ok := graphiti.ParseCurated(text); ok {
			role, text = cur.Kind, cur.Text
		}
		if said.Where == "queue" {
			role += " (waiting)"
		}
		if said.Ended != "" {
			role += " (ended)"
		}
		fmt.Fprintf(t, "%s\t%s\t", said.ID, minute(said.Time))
		if s.Own {
			fmt.Fprintf(t, "%s\t", whereKept[said.Scope])
		}
		fmt.Fprintf(t, "%s\t%s\n", terminal.Printable(role), terminal.Row(w, text, 88))
	}
	_ = t.Flush()
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

// minute formats a time for people, to the minute.
func minute(rfc3339 string) string {
	return strings.Replace(rfc3339[:min(len(rfc3339), len("2026-11-21T09:00"))], "T", " ", 1)
}

// hintAt prints a hint at groups outside of the search: the messages of a project are
// stored with the project.
func hintAt(w io.Writer, s *service.Selector, others []ledger.Owned) {
	if len(others) == 0 {
		return
	}
	list := "graphiti-proxy memory list"
	if s.User != "" {
		list += " --user " + terminal.Printable(s.User)
	}
	fmt.Fprintf(w, "not searched: %s; list them with %s\n", terminal.Count(len(others), "other group"), list)
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
	var explain bool
	c := &cobra.Command{
		Use:   "search <text>",
		Short: "Show the facts that a message would recall",
		Long: "Show the facts that a message with this text would recall at the beginning of a\n" +
			"conversation: in the project given by --workspace, or in the current git\n" +
			"repository, else outside of projects. SCOPE is the owner of a fact: workspace for\n" +
			"the project, user for you. --explain also shows the rejected facts, and why.",
		Example: "  graphiti-proxy memory search --explain 'which database do we use?'",
		Args:    cli.Needs("the text of a message"),
	}
	s := selectorFlags(c)
	cli.JSONFlag(c)
	c.Flags().BoolVar(&explain, "explain", false, "also show rejected facts, and why")
	c.RunE = withPlace(openMemoryFiles, s, func(c *cobra.Command, args []string, at *cli.Place) error {
		answer, err := cli.Call(c.Context(), at, service.Search, service.SearchRequest{Selector: *s, Query: strings.Join(args, " "), All: explain})
		if err != nil {
			return err
		}
		sayWhose(c, s)
		return cli.Output(c, answer, func(w io.Writer) { printFacts(w, c.ErrOrStderr(), s, &answer, explain) })
	})
	return c
}

func printFacts(w, errOut io.Writer, s *service.Selector, answer *service.Searched, explain bool) {
	hintAt(errOut, s, answer.Others)
	if len(answer.Facts) == 0 {
		fmt.Fprintln(errOut, "no facts found")
		return
	}
	t := terminal.Table(w)
	if explain {
		fmt.Fprint(t, "VERDICT\tSTRENGTH\t")
	}
	fmt.Fprintln(t, "SCOPE\tFACT")
	for _, f := range answer.Facts {
		if explain {
			strength := "-"
			if f.Strength != nil {
				strength = fmt.Sprintf("%.2f", *f.Strength)
			}
			fmt.Fprintf(t, "%s\t%s\t", f.Verdict, strength)
		}
		fmt.Fprintf(t, "%s\t%s\n", f.Scope, terminal.Row(w, f.Text, 500))
	}
	_ = t.Flush()
	if explain {
		fmt.Fprintln(w, answer.Threshold())
	}
}

func newMemoryPromoteCommand() *cobra.Command {
	var p service.Promotion
	c := &cobra.Command{
		Use:   "promote <text>",
		Short: "Store a decision, preference, procedure… verbatim",
		Long: "Store a text verbatim, and recall it verbatim. It belongs to the given workspace\n" +
			"or session, else to the person; --scope overrides this. - reads the text from\n" +
			"standard input. The same text is stored once. A text that appears to contain a\n" +
			"credential is rejected.",
		Example: "  graphiti-proxy memory promote --kind preference 'I write commit messages in the imperative'\n" +
			"  graphiti-proxy memory promote --kind decision --workspace . 'Postgres, not MySQL: we need jsonb'",
		Args: func(c *cobra.Command, args []string) error {
			if err := cli.Needs("the text to store")(c, args); err != nil {
				return err
			}
			if p.Kind == "" {
				return cli.Usage(fmt.Errorf("--kind is required; write one of %s", strings.Join(graphiti.Kinds, ", ")))
			}
			if !slices.Contains(graphiti.Kinds, p.Kind) {
				return cli.Usage(fmt.Errorf("--kind: unknown kind %q; write one of %s", p.Kind, strings.Join(graphiti.Kinds, ", ")))
			}
			return nil
		},
	}
	s := selectorFlags(c)
	c.Flags().StringVar(&p.Kind, "kind", "", "required: one of "+strings.Join(graphiti.Kinds, ", "))
	c.Flags().StringVar(&p.Scope, "scope", "", "user, workspace, session or agent")
	cli.Complete(c, "kind", graphiti.Kinds...)
	cli.Complete(c, "scope", "user", "workspace", "session", "agent")
	cli.JSONFlag(c)
	c.RunE = withPlace(makeMemoryFiles, nil, func(c *cobra.Command, args []string, at *cli.Place) error {
		p.Text = strings.Join(args, " ")
		if p.Text == "-" {
			b, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
			if err != nil {
				return fmt.Errorf("read standard input: %w", err)
			}
			p.Text = string(b)
		}
		answer, err := cli.Call(c.Context(), at, service.Promote, service.PromoteRequest{Selector: *s, Promotion: p})
		if err != nil {
			return err
		}
		return cli.Output(c, answer, func(w io.Writer) { fmt.Fprintf(w, "stored as %s for %s\n", p.Kind, terminal.Printable(answer.For)) })
	})
	return c
}

func newMemoryCorrectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "correct <id> <text>",
		Short: "Replace a message with a corrected text",
		Long: "Forget the message with this ID, and store the text in its place as your message\n" +
			"of now. From the next turn on, only the new text is recalled. memory show prints\n" +
			"the IDs. A promoted text keeps its kind. A client that sends its history again\n" +
			"does not bring the old message back. A text that appears to contain a credential\n" +
			"is rejected.",
		Example: "  graphiti-proxy memory correct 3fa9c1d20b7e 'Our database is Postgres 17'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usage(errors.New("write the id of a message from memory show, and the corrected text"))
			}
			return nil
		},
	}
	s := selectorFlags(c)
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, args []string, at *cli.Place) error {
		s.Message = args[0]
		done, err := cli.Call(c.Context(), at, service.Correct, service.CorrectRequest{Selector: *s, Text: strings.Join(args[1:], " ")})
		if err != nil {
			return err
		}
		return cli.Output(c, done, func(w io.Writer) { fmt.Fprintln(w, "stored; forgotten:", messageGone(&done.Forgotten)) })
	})
	return c
}
