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
	"golang.org/x/sync/errgroup"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryCommand() *cobra.Command {
	return describedGroup("memory", newMemoryShowCommand(), newMemoryListCommand(), newMemoryFactsCommand(), newMemoryWorkCommand(), newMemoryStatsCommand(), newMemoryRetentionCommand(), newMemoryLinkCommand(), newMemorySearchCommand(), newMemoryPendingCommand(), newMemoryPromoteCommand(),
		newMemoryImportCommand(), newMemoryExportCommand(), newMemoryForgetCommand(), newMemoryCorrectCommand(), newManyCommand("end", "ended"), newManyCommand("move", "moved"), newManyCommand("restore", "valid again"), newMemoryUndoCommand(), newMemorySendCommand(), newMemoryPeopleCommand(), newMemoryReceiptCommand())
}

func selectorFlags(c *cobra.Command) *service.Selector {
	var s service.Selector
	cli.InputFlags(c, &s)
	return &s
}

// findGroups returns the groups of a selector. For a session, these may also contain other
// sessions' messages. It returns none if all groups are empty.
func findGroups(ctx context.Context, at *cli.Runner, s *service.Selector) ([]ledger.Owned, error) {
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

func newMemoryForgetCommand() *cobra.Command {
	yes, wait, undoable, imported, receipt := false, false, false, "", ""
	c := described("memory-forget")
	s := selectorFlags(c)
	c.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	c.Flags().BoolVar(&wait, "wait", false, "wait until Graphiti has deleted it too, up to five minutes")
	c.Flags().BoolVar(&undoable, "undoable", false, "keep one copy for thirty days, which memory undo restores")
	c.Flags().Var(cli.Text(&receipt), "receipt", "write a signed receipt of each deleted memory to this file")
	c.Flags().Var(cli.Text(&imported), "import", "delete the turns of this import of transcripts")
	c.Flags().Var(cli.Text(&s.Message), "message", "delete this message or distilled fact, and nothing else")
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Runner) error {
		if imported != "" && *s != (service.Selector{}) {
			return cli.Usage(errors.New("--import is a selection: leave out others"))
		}
		s.Session = cmp.Or(imported, s.Session) // an import is a session of its own
		if undoable && receipt != "" {
			return cli.Usage(errors.New("--receipt: leave out --undoable: a receipt needs a deletion without a copy"))
		}
		if s.Message != "" && receipt != "" {
			return cli.Usage(errors.New("--receipt: only deletions of memories and conversations have one"))
		}
		if s.Message != "" {
			return forgetOne(c, at, &service.ForgetRequest{Selector: *s, Wait: wait, Undoable: undoable})
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
			agreed, err := ask(errOut, map[bool]string{false: "delete all of this permanently?", true: "forget all of this, with an undo for thirty days?"}[undoable])
			if err != nil {
				return cli.Usage(fmt.Errorf("not deleted: %w; add --yes to delete without asking", err))
			}
			if !agreed {
				return errors.New("not deleted")
			}
		}
		return forgetGroups(c, at, &service.ForgetRequest{Selector: *s, Wait: wait, Undoable: undoable}, groups, receipt)
	})
	return c
}

// forgetOne deletes one message.
func forgetOne(c *cobra.Command, at *cli.Runner, in *service.ForgetRequest) error {
	s := &in.Selector
	if s.Session != "" {
		return cli.Usage(errors.New("--message already selects one message; remove --session"))
	}
	var left error
	err := answer(c, at, service.Forget, in, nil, func(w, _ io.Writer, f *service.Forgotten) {
		left = remaining(f)
		fmt.Fprintln(w, "forgotten:", messageGone(f))
		printUndo(w, f.Undo)
	})
	return errors.Join(err, left)
}

// remaining returns an error if something may be left in Graphiti.
func remaining(f *service.Forgotten) error {
	if f.Remaining != "" {
		return errors.New(f.Remaining)
	}
	return nil
}

// messageGone returns the result of forgetting a message, in words.
func messageGone(f *service.Forgotten) string {
	says := fmt.Sprintf("message %s in %s", f.Message, terminal.Count(len(f.Groups), "group"))
	if f.Also > 0 {
		says += ", with its copies: it was said in " + terminal.Count(f.Also, "more conversation")
	}
	says += "; blocks that already contain it stay in their conversations"
	if f.NamesKept {
		says += "; Graphiti may keep names and summaries of entities: graphiti-proxy memory forget --group deletes them with the group"
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

// forgetGroups deletes each group in a call of its own, so that a failed deletion can be repeated.
// The calls run together, and share the wait for Graphiti.
func forgetGroups(c *cobra.Command, at *cli.Runner, in *service.ForgetRequest, groups []ledger.Owned, receipt string) error {
	s := &in.Selector
	done, blocks, failed := []service.Forgotten{}, 0, error(nil)
	groups = slices.DeleteFunc(groups, func(g ledger.Owned) bool { return g.Shared })
	answers, errs := make([]service.Forgotten, len(groups)), make([]error, len(groups))
	var calls errgroup.Group
	calls.SetLimit(8) // the limit of one person
	for i, g := range groups {
		calls.Go(func() error {
			answers[i], errs[i] = cli.Call(c.Context(), at, service.Forget, service.ForgetRequest{Selector: s.In(g.Group), Wait: in.Wait, Undoable: in.Undoable})
			return nil
		})
	}
	_ = calls.Wait() // returns no error
	for i, g := range groups {
		f, err := answers[i], errs[i]
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", g.Group, err))
			continue
		}
		done, blocks = append(done, f), blocks+f.Blocks
		if left := remaining(&f); left != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", g.Group, left))
			continue
		}
		switch {
		case f.NamesKept:
			fmt.Fprintf(c.ErrOrStderr(), "%d of %d: %s: messages and facts of %s are deleted; Graphiti may keep names and summaries of entities; to delete them too, forget the whole group: graphiti-proxy memory forget --group %s\n",
				i+1, len(groups), g.Group, cmp.Or(g.Session, f.Session), g.Group)
		case g.Session != "":
			fmt.Fprintf(c.ErrOrStderr(), "%d of %d: %s has no messages of %s\n", i+1, len(groups), g.Group, g.Session)
		default:
			fmt.Fprintf(c.ErrOrStderr(), "%d of %d: %s is empty\n", i+1, len(groups), g.Group)
		}
	}
	err := cli.Output(c, map[string]any{"forgotten": done}, func(w io.Writer) {
		what := terminal.Count(len(done), "group") + " forgotten"
		if s.Session != "" {
			of := "session"
			if c.Flags().Changed("import") {
				of = "import"
			}
			what = "the " + of + " is forgotten in " + terminal.Count(len(done), "group")
		}
		fmt.Fprintf(w, "%s, and %s in conversations\n", what, terminal.Count(blocks, "block"))
		for i := range done {
			printUndo(w, done[i].Undo)
		}
	})
	if receipt != "" {
		err = errors.Join(err, writeReceipts(receipt, done))
	}
	return errors.Join(err, failed)
}

func newMemoryExportCommand() *cobra.Command {
	c := described("memory-export")
	s := selectorFlags(c)
	file, remove := "", false
	c.Flags().Var(cli.Text(&file), "markdown", "write the project's confirmed rules and facts to this file, between two markers; - prints them")
	c.Flags().Lookup("markdown").NoOptDefVal = agentsFile
	c.Flags().BoolVar(&remove, "remove", false, "with --markdown, take the lines out again")
	c.Flags().Bool("json", true, "")
	_ = c.Flags().MarkHidden("json") // the flag exists; the output is JSON Lines anyway
	c.RunE = withPlace(openMemoryFiles, s, func(c *cobra.Command, _ []string, at *cli.Runner) error {
		if file != "" || remove {
			return exportMarkdown(c, at, s, cmp.Or(file, agentsFile), remove)
		}
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
			err := cli.Each(c.Context(), at, service.Export, s.In(g.Group), func(r service.Record) error {
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
		fmt.Fprintf(c.ErrOrStderr(), "%s from %s\n", terminal.Count(n, "line"), terminal.Count(len(groups), "group"))
		return nil
	})
	return c
}
