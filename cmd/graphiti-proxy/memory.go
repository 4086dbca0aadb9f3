package main

import (
	"bufio"
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
	"github.com/graphiti-proxy/graphiti-proxy/service"
	"github.com/graphiti-proxy/graphiti-proxy/terminal"
)

func newMemoryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "memory",
		Short:   "Show, search, add to, import, export and forget what is remembered",
		Long:    "Show, search, add to, import, export and forget what is remembered: through the\nrunning proxy, or on its files where none runs.",
		Example: "  graphiti-proxy memory show\n  graphiti-proxy memory search 'which database?'\n  graphiti-proxy memory forget --user josh",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newMemoryShowCommand(), newMemorySearchCommand(), newMemoryPromoteCommand(), newMemoryImportCommand(),
		newMemoryExportCommand(), newMemoryForgetCommand())
	return c
}

// selectorFlags lets a command say whose memory is meant.
func selectorFlags(c *cobra.Command) *service.Selector {
	var s service.Selector
	f := c.Flags()
	f.StringVar(&s.User, "user", "", "a person: josh, github_login:octocat, discord:123; all that is theirs")
	f.StringVar(&s.Agent, "agent", "", "an agent's view of the person")
	f.StringVar(&s.Workspace, "workspace", "", "a project: github_repo:github.com/org/repo, path:/home/me/x, or a remote's address")
	f.StringVar(&s.Session, "session", "", "a conversation")
	f.StringVar(&s.Group, "group", "", "a group of Graphiti's, by its id")
	f.StringVar(&s.Credential, "credential", "", "sha256:<hex> of a credential, in identity.mode multi; several that are sent together with commas between them")
	return &s
}

// findGroups asks the proxy for the groups that are meant, and for those of
// which what was said in a session is.
func findGroups(ctx context.Context, m *opened, s *service.Selector) ([]ledger.Owned, error) {
	if *s == (service.Selector{}) {
		return nil, usageError{errors.New("say whose memory is meant: --user, --agent, --workspace, --session, --group or --credential")}
	}
	found, err := m.Find(ctx, *s)
	return append(found.Groups, found.Parts...), err
}

// oneOf is what a call about one of the groups names.
func oneOf(s *service.Selector, group string) service.Selector {
	one := service.Selector{Group: group}
	if s.Session != "" {
		one.Session, one.User, one.Credential = s.Session, s.User, s.Credential
	}
	return one
}

func newMemoryForgetCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "forget",
		Short: "Delete a person's, a project's or a conversation's memory everywhere",
		Long: "Delete memory everywhere it is: in the memory itself, in caches, in what was\n" +
			"inserted into running conversations, in the queue and among refused turns, in\n" +
			"what a session is told of itself, and in turns that are under way. When the\n" +
			"command ends without an error nothing of it is recalled any more, on no\n" +
			"replica that Redis reaches, and a history that a client sends again does not\n" +
			"bring it back. It cannot be undone.\n\n" +
			"It waits until Graphiti has come to all that it had accepted, which may take\n" +
			"minutes, and then looks whether all is gone. When it fails it says what remains\n" +
			"and what to do; until it succeeds nothing of that group is recalled, and new\n" +
			"turns for it wait. Run it again, which also deletes what was said since.\n\n" +
			"Groups that several people wrote to are named and left: give --group for them.\n\n" +
			"--session deletes what was said in one conversation, whichever memory that is\n" +
			"in. Facts that Graphiti had from others before it stay, and so does what other\n" +
			"conversations said of it. Running conversations with the same memory lose the\n" +
			"blocks that were inserted into them.\n\n" +
			"Out of reach is what others hold: the provider, for conversations of which it\n" +
			"keeps the history, and backups.",
		Example: "  graphiti-proxy memory forget --user josh\n  graphiti-proxy memory forget --workspace github_repo:github.com/acme/widgets --yes\n  graphiti-proxy memory forget --session ses_1",
		Args:    noArgs,
	}
	s := selectorFlags(c)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	jsonFlag(c)
	c.RunE = withMemory(func(c *cobra.Command, _ []string, m *opened) error {
		groups, err := findGroups(c.Context(), m, s)
		if err != nil {
			return err
		}
		errOut := c.ErrOrStderr()
		printGroups(errOut, groups)
		if len(groups) == 0 {
			return errors.New("nothing is remembered there")
		}
		if !slices.ContainsFunc(groups, func(g ledger.Owned) bool { return !g.Shared }) {
			return errors.New("others wrote to it too, so that nothing was deleted; name it with --group to delete what is theirs with it")
		}
		if !yes {
			if !terminal.Is(os.Stdin) {
				return usageError{errors.New("nothing was deleted; give --yes to delete without being asked")}
			}
			fmt.Fprint(errOut, "delete all of this for good? [y/N] ")
			line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
			if !strings.EqualFold(strings.TrimSpace(line), "y") {
				return errors.New("nothing was deleted")
			}
		}
		return forgetGroups(c, m, s, groups)
	})
	return c
}

func printGroups(w io.Writer, groups []ledger.Owned) {
	t := terminal.Table(w)
	for _, g := range groups {
		note := ""
		if g.Session != "" {
			note = "what was said in " + g.Session
		}
		if g.Shared {
			note = "others wrote to it too: left"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", terminal.Printable(g.Group), g.Scope, terminal.Printable(g.Key), note)
	}
	_ = t.Flush()
}

// forgetGroups deletes one group after the other, so that what fails can be
// done again.
func forgetGroups(c *cobra.Command, m *opened, s *service.Selector, groups []ledger.Owned) error {
	done, blocks, failed := []service.Forgotten{}, 0, error(nil)
	for i, g := range groups {
		if g.Shared {
			continue
		}
		f, err := m.Forget(c.Context(), oneOf(s, g.Group))
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", g.Group, err))
			continue
		}
		done, blocks = append(done, f), blocks+f.Blocks
		if g.Session != "" {
			fmt.Fprintf(c.ErrOrStderr(), "%d of %d: %s holds nothing of %s\n", i+1, len(groups), g.Group, g.Session)
		} else {
			fmt.Fprintf(c.ErrOrStderr(), "%d of %d: %s is empty\n", i+1, len(groups), g.Group)
		}
	}
	err := output(c, map[string]any{"forgotten": done}, func(w io.Writer) {
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
		Short: "Print everything that is kept, as JSON Lines",
		Long: "Print everything that is kept, as JSON Lines: what the memory holds, what waits\n" +
			"for it or was refused, and what sessions are told of themselves when their\n" +
			"clients have dropped their histories.",
		Example: "  graphiti-proxy memory export --user josh > josh.jsonl\n  graphiti-proxy memory export --session ses_1",
		Args:    noArgs,
	}
	s := selectorFlags(c)
	c.Flags().Bool("json", true, "JSON Lines, which it is anyway")
	c.RunE = withMemory(func(c *cobra.Command, _ []string, m *opened) error {
		groups, err := findGroups(c.Context(), m, s)
		if err != nil {
			return err
		}
		n := 0
		out := json.NewEncoder(c.OutOrStdout())
		for _, g := range groups {
			err := m.Export(c.Context(), oneOf(s, g.Group), func(r service.Record) error {
				n++
				return out.Encode(r)
			})
			if err != nil {
				return fmt.Errorf("the export of %s is not complete: %w", g.Group, err)
			}
		}
		fmt.Fprintf(c.ErrOrStderr(), "%d messages in %d groups\n", n, len(groups))
		return nil
	})
	return c
}
