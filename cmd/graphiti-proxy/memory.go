package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "memory",
		Short: "Show, list, search, confirm, add, correct, import, export and forget memory",
		Long: "Show, list, search, confirm, add, correct, import, export and forget memory,\n" +
			"through the running proxy, or in its files if none is running.",
		Example: "  graphiti-proxy memory show\n  graphiti-proxy memory list\n  graphiti-proxy memory search 'which database?'\n  graphiti-proxy memory pending\n  graphiti-proxy memory forget --user josh",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newMemoryShowCommand(), newMemoryListCommand(), newMemoryFactsCommand(), newMemoryStatsCommand(), newMemorySearchCommand(), newMemoryPendingCommand(), newMemoryPromoteCommand(),
		newMemoryImportCommand(), newMemoryExportCommand(), newMemoryForgetCommand(), newMemoryCorrectCommand(), newMemoryRestoreCommand())
	return c
}

// selectorFlags adds the flags that select a memory.
func selectorFlags(c *cobra.Command) *service.Selector {
	var s service.Selector
	f := c.Flags()
	f.Var(cli.Text(&s.User), "user", "a person, with all their memory: me, josh, github_login:octocat, discord:123")
	f.Var(cli.Text(&s.Agent), "agent", "one agent's memory of the person")
	f.Var(cli.Text(&s.Workspace), "workspace", "a project: its directory, such as ., the URL of its git remote, or its key, such as github_repo:github.com/org/repo")
	f.Var(cli.Text(&s.Session), "session", "a conversation, by its client's id or its id from memory list")
	f.Var(cli.Text(&s.Group), "group", "one group, by its id")
	f.Var(cli.Text(&s.Credential), "credential", "sha256:<hex> of a credential, in identity.mode multi; separate several credentials of one client with commas")
	return &s
}

// findGroups returns the groups of a selector. For a session, these may also contain other
// sessions' messages. It returns none if all groups are empty.
func findGroups(ctx context.Context, at *cli.Place, s *service.Selector) ([]ledger.Owned, error) {
	found, err := cli.Call(ctx, at, service.Groups, *s)
	if err != nil && *s == (service.Selector{}) {
		return nil, cli.Usage(errors.New("name a memory with --user, --agent, --workspace, --session, --group or --credential"))
	}
	all := append(found.Groups, found.Parts...)
	if !slices.ContainsFunc(all, func(o ledger.Owned) bool { return !o.Empty }) {
		return nil, err
	}
	return all, err
}

// oneOf returns the selector of a call about one of the groups.
func oneOf(s *service.Selector, group string) service.Selector {
	one := service.Selector{Group: group}
	if s.Session != "" {
		one.Session, one.User, one.Credential = s.Session, s.User, s.Credential
	}
	return one
}

func newMemoryForgetCommand() *cobra.Command {
	yes, imported := false, ""
	c := &cobra.Command{
		Use:   "forget",
		Short: "Delete a person's, a project's or a conversation's memory everywhere",
		Long: "Delete memory everywhere: in the memory itself, in caches, in the queue, among\n" +
			"dead letters, in session notes, in blocks of running conversations, and in turns\n" +
			"that are being delivered. After the command succeeds, no replica connected to\n" +
			"Redis recalls it, and a client that sends its history again does not bring it\n" +
			"back. It cannot be undone.\n\n" +
			"The command waits until Graphiti has processed all accepted messages, which may\n" +
			"take minutes, and then checks that everything is deleted. If it fails, it reports\n" +
			"the remaining data and the remedy. Until it succeeds, the group is not recalled\n" +
			"and its new turns wait. Running it again also deletes newer messages.\n\n" +
			"Without a flag, it deletes all memory of this machine's owner.\n\n" +
			"It only lists groups with messages of several people; delete those with --group.\n\n" +
			"--session deletes one conversation's messages in every group. Facts that Graphiti\n" +
			"also learned from other conversations stay. Running conversations that use the\n" +
			"same groups lose their blocks. The ID is the client's, or the one from memory\n" +
			"list.\n\n" +
			"--card removes one line from the card that opens conversations, and deletes\n" +
			"nothing else. memory show lists the lines of the card.\n\n" +
			"--message deletes one message, by its ID from memory show, from each of its\n" +
			"groups; the rest of its turn stays. Blocks that already contain it stay in their\n" +
			"conversations, because the beginning of a conversation must not change; new blocks\n" +
			"omit it.\n\n" +
			"--import deletes the turns of one memory import --agents, by the name that it\n" +
			"printed. Later imports leave those turns out.\n\n" +
			"It cannot delete copies outside of the proxy: the provider's histories, backups.",
		Example: "  graphiti-proxy memory forget --user josh\n  graphiti-proxy memory forget --workspace github_repo:github.com/acme/widgets --yes\n  graphiti-proxy memory forget --session ses_1\n  graphiti-proxy memory forget --card 'Always use tabs'\n  graphiti-proxy memory forget --message 3fa9c1d20b7e",
	}
	s := selectorFlags(c)
	c.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	c.Flags().Var(cli.Text(&imported), "import", "delete the turns of this import of transcripts")
	c.Flags().Var(cli.Text(&s.Card), "card", "take this line off the card, and delete nothing else")
	c.Flags().Var(cli.Text(&s.Message), "message", "delete this message, and nothing else")
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Place) error {
		if imported != "" && *s != (service.Selector{}) {
			return cli.Usage(errors.New("--import is a selection: leave out others"))
		}
		s.Session = cmp.Or(imported, s.Session) // an import is a session of its own
		if s.Card+s.Message != "" {
			return forgetOne(c, at, s)
		}
		groups, err := findGroups(c.Context(), at, s)
		if err != nil {
			return err
		}
		errOut := c.ErrOrStderr()
		if len(groups) == 0 {
			return fmt.Errorf("no memory yet for %s; nothing to delete", s.Whose())
		}
		cli.PrintGroups(errOut, groups)
		if !slices.ContainsFunc(groups, func(g ledger.Owned) bool { return !g.Shared }) {
			return errors.New("refused: other people wrote to these groups too; to delete their turns as well, name a group with --group")
		}
		if !yes {
			agreed, err := ask(errOut, "delete all of this permanently?")
			if err != nil {
				return cli.Usage(fmt.Errorf("not deleted: %w; add --yes to delete without asking", err))
			}
			if !agreed {
				return errors.New("not deleted")
			}
		}
		return forgetGroups(c, at, s, groups)
	})
	return c
}

// forgetOne deletes one message, or removes a line from the card.
func forgetOne(c *cobra.Command, at *cli.Place, s *service.Selector) error {
	if s.Message != "" && s.Card+s.Session != "" {
		return cli.Usage(errors.New("--message already selects one message; remove --card and --session"))
	}
	f, err := cli.Call(c.Context(), at, service.Forget, service.ForgetRequest{Selector: *s})
	if err != nil {
		return err
	}
	return cli.Output(c, f, func(w io.Writer) {
		if s.Message != "" {
			fmt.Fprintln(w, "forgotten:", messageGone(&f))
			return
		}
		fmt.Fprintln(w, "off the card:", terminal.Printable(strings.Join(f.Card, "; ")))
	})
}

// messageGone returns the result of forgetting a message, in words.
func messageGone(f *service.Forgotten) string {
	says := fmt.Sprintf("message %s in %s; blocks that already contain it stay in their conversations", f.Message, terminal.Count(len(f.Groups), "group"))
	if f.NamesKept {
		says += "; Graphiti keeps names and summaries of entities: graphiti-proxy memory forget --group deletes them with the group"
	}
	return says
}

// ask asks a person for confirmation, and reports whether they agree. It returns an error
// without a terminal.
func ask(errOut io.Writer, question string) (agreed bool, err error) {
	if !terminal.Is(os.Stdin) {
		return false, errors.New("no terminal to ask on")
	}
	fmt.Fprintf(errOut, "%s [y/N] ", question)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	return isYes(line), nil
}

// isYes reports whether an answer to [y/N] agrees.
func isYes(line string) bool {
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// forgetGroups deletes one group after the other, so that a failed deletion can be
// repeated.
func forgetGroups(c *cobra.Command, at *cli.Place, s *service.Selector, groups []ledger.Owned) error {
	done, blocks, failed := []service.Forgotten{}, 0, error(nil)
	for i, g := range groups {
		if g.Shared {
			continue
		}
		f, err := cli.Call(c.Context(), at, service.Forget, service.ForgetRequest{Selector: oneOf(s, g.Group)})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", g.Group, err))
			continue
		}
		done, blocks = append(done, f), blocks+f.Blocks
		switch {
		case f.NamesKept:
			fmt.Fprintf(c.ErrOrStderr(), "%d of %d: %s: messages and facts of %s are deleted; Graphiti keeps names and summaries of entities; to delete them too, forget the whole group: graphiti-proxy memory forget --group %s\n",
				i+1, len(groups), g.Group, g.Session, g.Group)
		case g.Session != "":
			fmt.Fprintf(c.ErrOrStderr(), "%d of %d: %s has no messages of %s\n", i+1, len(groups), g.Group, g.Session)
		default:
			fmt.Fprintf(c.ErrOrStderr(), "%d of %d: %s is empty\n", i+1, len(groups), g.Group)
		}
	}
	err := cli.Output(c, map[string]any{"forgotten": done}, func(w io.Writer) {
		what := terminal.Count(len(done), "group") + " forgotten"
		if s.Session != "" {
			what = "the session is forgotten in " + terminal.Count(len(done), "group")
		}
		fmt.Fprintf(w, "%s, and %s in conversations\n", what, terminal.Count(blocks, "block"))
	})
	return errors.Join(err, failed)
}

func newMemoryExportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export",
		Short: "Print all stored data as JSON Lines",
		Long: "Print all stored data as JSON Lines: the memory's messages, turns in the queue,\n" +
			"dead letters, and session notes. In a project, a git repository, it prints the\n" +
			"project's data and your own; elsewhere all of your data, projects included.\n" +
			"graphiti-proxy memory import reads the output.",
		Example: "  graphiti-proxy memory export --user me > memory.jsonl\n  graphiti-proxy memory export --workspace .\n  graphiti-proxy memory export --user josh > josh.jsonl",
	}
	s := selectorFlags(c)
	c.Flags().Bool("json", true, "")
	_ = c.Flags().MarkHidden("json") // the flag exists; the output is JSON Lines anyway
	c.RunE = withPlace(openMemoryFiles, s, func(c *cobra.Command, _ []string, at *cli.Place) error {
		groups, err := findGroups(c.Context(), at, s)
		if err != nil {
			return err
		}
		switch {
		case s.Own:
			fmt.Fprintln(c.ErrOrStderr(), meantHere(s)+"; for all of your memory add --user me")
		case *s == service.Selector{}:
			fmt.Fprintln(c.ErrOrStderr(), "all of your memory, projects included")
		}
		n := 0
		out := json.NewEncoder(c.OutOrStdout())
		for _, g := range groups {
			one := oneOf(s, g.Group)
			in := service.ExportRequest{Group: one.Group, Session: one.Session, User: one.User, Credential: one.Credential}
			err := cli.Each(c.Context(), at, service.Export, in, func(r service.Record) error {
				n++
				return out.Encode(r)
			})
			if err != nil {
				return fmt.Errorf("export %s: incomplete: %w", g.Group, err)
			}
		}
		if n == 0 {
			fmt.Fprintf(c.ErrOrStderr(), "no memory yet for %s\n", s.Whose())
			return nil
		}
		fmt.Fprintf(c.ErrOrStderr(), "%s in %s\n", terminal.Count(n, "message"), terminal.Count(len(groups), "group"))
		return nil
	})
	return c
}
