package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

func newMemoryListCommand() *cobra.Command {
	var s service.Selector
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List your own memory, projects and conversations, with counts",
		Long: "List your own memory, projects and agents, and conversations with their first\n" +
			"words and the ID for --session of memory show and memory forget. Each has its\n" +
			"number of messages and the times of the first and last one; the newest come first.\n" +
			"A project that others share includes their messages.\n\n" +
			"Graphiti cannot list its groups. With it, the list contains the projects that this\n" +
			"proxy wrote to.",
		Example: "  graphiti-proxy memory list\n  graphiti-proxy memory list --limit 5 --json\n  graphiti-proxy memory list --user josh",
	}
	c.Flags().Var(cli.Text(&s.User), "user", "a person: me, josh, github_login:octocat, discord:123")
	c.Flags().Var(cli.Text(&s.Credential), "credential", "sha256:<hex> of a credential, in identity.mode multi")
	c.Flags().IntVar(&limit, "limit", 50, "how many memories, and how many conversations")
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Place) error {
		if err := service.CheckLimit(limit); err != nil {
			return cli.Usage(fmt.Errorf("--%w", err))
		}
		all, err := cli.Call(c.Context(), at, service.List, service.ListRequest{Selector: s, Limit: limit})
		if err != nil {
			return err
		}
		return cli.Output(c, all, func(w io.Writer) {
			printCatalog(w, c.ErrOrStderr(), &s, &all)
			printApart(c)
		})
	})
	return c
}

// printApart prints the place of the memory of this directory's project, if the directory
// has a memory of its own.
func printApart(c *cobra.Command) {
	cfg, err := cli.LoadConfig(c)
	if err != nil || cfg.Identity.Mode == "multi" {
		return
	}
	repo, _, _ := workspace.Around(cli.Dir(c), filepath.Join(cfg.DataDir, projectsFile), cfg.Workspace.Clones)
	if project := workspace.Key(repo.Claimed); project != "" {
		a := workspace.Apart{Directory: repo.Root, Workspace: project}
		fmt.Fprintf(c.ErrOrStderr(), "%s has the remote of %s, and a memory of its own; %s\n", terminal.Printable(a.Directory), terminal.Printable(service.Selector{Workspace: a.Workspace}.Whose()), a.Remedy())
	}
}

func printCatalog(w, errOut io.Writer, s *service.Selector, all *service.Catalog) {
	if all.Note != "" {
		fmt.Fprintln(errOut, all.Note)
	}
	if len(all.Memories)+len(all.Conversations) == 0 {
		fmt.Fprintf(errOut, "no memory yet for %s\n", s.Whose())
		return
	}
	t := terminal.Table(w)
	fmt.Fprintln(t, "MEMORY\tKIND\tMESSAGES\tFIRST\tLAST")
	for _, k := range all.Memories {
		kind := cmp.Or(map[string]string{"user": "own", "workspace": "project"}[k.Scope], k.Scope, "-")
		if k.Shared {
			kind += ", shared"
		}
		count := strconv.Itoa(k.Messages)
		if k.Uncounted != "" {
			count = "?"
			fmt.Fprintf(errOut, "not counted: %s: %s\n", terminal.Printable(k.Name), k.Uncounted)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", terminal.Row(w, k.Name, 60), kind, count, minute(k.First), minute(k.Last))
	}
	_ = t.Flush()
	printMore(w, all.AllMemories-len(all.Memories))
	if len(all.Conversations) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = terminal.Table(w)
	fmt.Fprintln(t, "CONVERSATION\tIN\tMESSAGES\tFIRST\tLAST\tID")
	for _, talk := range all.Conversations {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", terminal.Row(w, cmp.Or(talk.Begins, talk.Session, "-"), 50), terminal.Row(w, talk.In, 40), talk.Messages, minute(talk.First), minute(talk.Last), talk.Hash)
	}
	_ = t.Flush()
	printMore(w, all.AllConversations-len(all.Conversations))
}

func printMore(w io.Writer, more int) {
	if more > 0 {
		fmt.Fprintf(w, "… and %d more; list them with --limit\n", more)
	}
}
