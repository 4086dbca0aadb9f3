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
	c, in := described("memory-list"), service.List.Default
	cli.InputFlags(c, &in, "agent", "workspace", "session", "group")
	cli.JSONFlag(c)
	c.RunE = checked(&in, withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Runner) error {
		all, err := cli.Call(c.Context(), at, service.List, in)
		if err != nil {
			return err
		}
		crowd, _ := cli.Call(c.Context(), at, service.Everybody, service.PeopleRequest{Limit: in.Limit}) // only operators get an answer
		return cli.Output(c, all, func(w io.Writer) {
			printCatalog(w, c.ErrOrStderr(), &in.Selector, &all)
			for _, p := range crowd.People {
				if person := p.Means.User; person != "" && len(crowd.People) > 1 {
					fmt.Fprintf(w, "%s: graphiti-proxy memory list --user %s\n", terminal.Printable(p.Name), terminal.Printable(person))
				}
			}
			printApart(c)
		})
	}))
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
	printNote(errOut, all.Note)
	if len(all.Memories)+len(all.Conversations) == 0 {
		fmt.Fprintf(errOut, "no memory yet for %s\n", s.Whose())
		return
	}
	var t terminal.Table
	t.Row("MEMORY", "KIND", "MESSAGES", "FIRST", "LAST")
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
		t.Row(k.Name, kind, count, minute(k.First), minute(k.Last))
	}
	t.Print(w)
	printMore(w, all.AllMemories-len(all.Memories))
	if len(all.Conversations) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = terminal.Table{}
	t.Row("CONVERSATION", "IN", "MESSAGES", "FIRST", "LAST", "ID")
	for _, talk := range all.Conversations {
		t.Row(cmp.Or(talk.Begins, talk.Session, "-"), talk.In, talk.Messages, minute(talk.First), minute(talk.Last), talk.Hash)
	}
	t.Print(w)
	printMore(w, all.AllConversations-len(all.Conversations))
}

func printMore(w io.Writer, more int) {
	if more > 0 {
		fmt.Fprintf(w, "… and %d more; list them with --limit\n", more)
	}
}
