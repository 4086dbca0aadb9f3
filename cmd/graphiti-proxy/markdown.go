package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
	"github.com/graphiti-proxy/graphiti-proxy/internal/transcripts"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// agentsFile is the file of instructions that most agents read, in the root of a project.
const agentsFile = "AGENTS.md"

// exportMarkdown writes the confirmed rules and the valid facts of a project between two markers of
// a file, or takes them out. "-" prints them. AGENTS.md means the one in the root of the project.
func exportMarkdown(c *cobra.Command, at *cli.Runner, s *service.Selector, file string, remove bool) error {
	if s.Workspace == "" {
		return cli.Usage(errors.New("--markdown writes the memory of a project: run it in the project's directory, or name it with --workspace"))
	}
	if *s != (service.Selector{Workspace: s.Workspace, Own: s.Own}) {
		return cli.Usage(errors.New("--markdown takes no other selection than --workspace"))
	}
	if file == agentsFile {
		cfg, err := cli.LoadConfig(c)
		if err != nil {
			return err
		}
		repo, key, _ := workspace.Around(cli.Dir(c), filepath.Join(cfg.DataDir, projectsFile), cfg.Workspace.Clones)
		if key != s.Workspace {
			return cli.Usage(errors.New("the project is not that of this directory; name the file: --markdown=FILE"))
		}
		file = filepath.Join(repo.Root, agentsFile)
	}
	section, n := "", 0
	if !remove {
		var err error
		if section, n, err = projectSection(c, at, s.Workspace); err != nil {
			return err
		}
	}
	if file == "-" {
		_, err := io.WriteString(c.OutOrStdout(), section)
		return err
	}
	if err := replaceSection(file, section); err != nil {
		return fmt.Errorf("write the memory to %s: %w", file, err)
	}
	says := "has the " + terminal.Count(n, "line") + " of the project's memory"
	switch {
	case remove:
		says = "has no lines of the memory"
	case n == 0:
		says = "has no lines of the memory: the project has no confirmed rules and no facts"
	}
	fmt.Fprintln(c.OutOrStdout(), file, says)
	return nil
}

// projectSection returns the section of a project, or "", and the number of its lines.
func projectSection(c *cobra.Command, at *cli.Runner, key string) (section string, n int, err error) {
	project := service.Selector{Workspace: key}
	lines, err := cli.Call(c.Context(), at, service.Pending, service.PendingRequest{Selector: project, All: true})
	if err != nil {
		return "", 0, err
	}
	known, err := cli.Call(c.Context(), at, service.Search, service.SearchRequest{
		Selector: project, SearchFilter: service.SearchFilter{Kind: service.KindFact, State: service.Valid, Newest: true}, Limit: service.MaxListed,
	})
	if err != nil {
		return "", 0, err
	}
	var rules, facts strings.Builder
	seen := make(map[string]bool)
	add := func(to *strings.Builder, text string) {
		text = strings.Join(strings.Fields(strings.NewReplacer("<!--", "", "-->", "").Replace(text)), " ")
		if text != "" && !seen[text] {
			seen[text] = true
			to.WriteString("- " + text + "\n")
		}
	}
	for _, l := range lines.Lines {
		if l.State == card.Confirmed && !l.Personal && l.Kind != card.KindForget {
			add(&rules, l.Text)
		}
	}
	for _, k := range known.Facts {
		if k.Origin != service.KindSaid && k.Scope == string(graphiti.ScopeWorkspace) {
			add(&facts, k.Text)
		}
	}
	for _, part := range []struct{ title, lines string }{{"Rules", rules.String()}, {"Facts", facts.String()}} {
		if part.lines != "" {
			section += "\n## " + part.title + "\n\n" + part.lines
		}
	}
	if section == "" {
		return "", 0, nil
	}
	return transcripts.SectionBegin + strings.TrimPrefix(section, "\n") + "\n" + transcripts.SectionEnd, len(seen), nil
}

// replaceSection replaces the section between the markers of a file, or adds it at the end. An empty
// section takes the old one out, and deletes a file without other lines. It follows no link, because
// a repository may contain one.
func replaceSection(file, section string) error {
	info, err := os.Lstat(file)
	if err == nil && !info.Mode().IsRegular() {
		return errors.New("it is no regular file; name another file")
	}
	var old []byte
	mode := os.FileMode(0o644)
	if err == nil {
		mode = info.Mode().Perm()
		if old, err = os.ReadFile(file); err != nil { // #nosec G304 -- the person names it
			return err
		}
	}
	before, rest, found := bytes.Cut(old, []byte(transcripts.SectionBegin))
	_, after, ended := bytes.Cut(rest, []byte(transcripts.SectionEnd))
	switch {
	case found && !ended:
		return fmt.Errorf("the line %q is missing; delete the line %q and the lines of the memory after it", strings.TrimSpace(transcripts.SectionEnd), strings.TrimSpace(transcripts.SectionBegin))
	case !found && section == "":
		return nil
	case !found && len(old) > 0:
		before = append(bytes.TrimRight(bytes.Clone(old), "\n"), "\n\n"...)
	}
	text := bytes.Join([][]byte{before, []byte(section), after}, nil)
	switch {
	case section == "" && len(bytes.TrimSpace(text)) == 0:
		return os.Remove(file)
	case section == "" && len(after) == 0:
		text = append(bytes.TrimRight(text, "\n"), '\n')
	case bytes.Equal(text, old):
		return nil
	}
	if err := datadir.WriteFile(file, text); err != nil {
		return err
	}
	return os.Chmod(file, mode)
}
