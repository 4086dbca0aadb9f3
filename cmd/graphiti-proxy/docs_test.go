package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// shownCommand matches a command of graphiti-proxy in a document: a line of a code block,
// or inline code.
var shownCommand = regexp.MustCompile("(?:^|[`\\s/])(?:graphiti-proxy|go run \\./cmd/graphiti-proxy) ([a-z][a-z-]*(?:[ \\t][^`\\n|>#]*)?)")

// shellWord matches a word of a command line.
var shellWord = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)

// shownVariable matches an environment variable of a setting.
var shownVariable = regexp.MustCompile(`GRAPHITI_PROXY_[A-Z_]*[A-Z]`)

// documents returns the files that show commands and settings to users.
func documents(t *testing.T) (files []string) {
	t.Helper()
	root := filepath.Join("..", "..")
	for _, dir := range []string{"docs", "deploy"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "man" { // generated from the commands
				return fs.SkipDir
			}
			switch filepath.Ext(path) {
			case ".md", ".yaml", ".yml", ".service", "":
				if err == nil && !d.IsDir() {
					files = append(files, path)
				}
			}
			return err
		})
		must(t, err)
	}
	return append(files, filepath.Join(root, "README.md"))
}

// TestDocumentedCommands checks that the binary has every command, flag and setting shown
// in a document.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	settings, variables := make(map[string]bool), make(map[string]bool)
	for _, k := range new(config.Config).Settings() {
		settings[k.Key] = true
		env := "GRAPHITI_PROXY_" + strings.ToUpper(strings.ReplaceAll(k.Key, ".", "_"))
		variables[env], variables[env+"_FILE"] = true, true
	}
	commands := 0
	for _, file := range documents(t) {
		b := helptest.File(t, file)
		for _, name := range shownVariable.FindAllString(string(b), -1) {
			if !variables[name] {
				t.Errorf("%s: %s is no setting", file, name)
			}
		}
		for _, m := range shownCommand.FindAllStringSubmatch(strings.ReplaceAll(string(b), "\\\n", " "), -1) {
			words := shellWord.FindAllString(m[1], -1)
			c, rest, err := newRootCommand().Find(words)
			if !c.HasParent() {
				continue // prose, or a name
			}
			commands++
			if err == nil {
				err = c.ParseFlags(rest)
			}
			if err == nil && c.HasSubCommands() && c.Flags().NArg() > 0 {
				err = fmt.Errorf("there is no command %s", c.Flags().Arg(0))
			}
			if err != nil {
				t.Errorf("%s shows %q: %v", file, m[0], err)
				continue
			}
			values, err := c.Flags().GetStringArray("set")
			must(t, err)
			for _, v := range values {
				if key, _, _ := strings.Cut(strings.Trim(v, `'"`), "="); !settings[key] {
					t.Errorf("%s shows %q: %s is no setting", file, m[0], key)
				}
			}
		}
	}
	if commands < 50 {
		t.Errorf("got %d commands in the documents, want at least 50", commands)
	}
}

// TestLinksInDocsLeadSomewhere follows the relative links of every Markdown
// file of the project.
func TestLinksInDocsLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
		return nil
	})
	must(t, err)
	if files < 10 {
		t.Errorf("found %d Markdown files only", files)
	}
}

// TestSiteHasEachPage: the navigation of the documentation site names each page of docs.
func TestSiteHasEachPage(t *testing.T) {
	nav := helptest.File(t, "../../deploy/site/mkdocs.yml")
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("got %d pages of docs and %v, want some", len(pages), err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); !strings.Contains(string(nav), ": "+name+"\n") {
			t.Errorf("deploy/site/mkdocs.yml: the navigation has no %s", name)
		}
	}
}

// TestArchitectureNamesExist checks that the files that docs/architecture.md names exist, and
// declare the names that follow them, as in `inject/choose.go` `choose` and `look`.
func TestArchitectureNamesExist(t *testing.T) {
	t.Parallel()
	page := helptest.File(t, "../../docs/architecture.md")
	namedFile := regexp.MustCompile("`([a-z_/]+/[a-z_]+\\.[a-z]+)`((?:(?: | and |, )`[A-Za-z]+`)*)")
	name := regexp.MustCompile("`([A-Za-z]+)`")
	files, names := 0, 0
	for _, m := range namedFile.FindAllStringSubmatch(string(page), -1) {
		files++
		code, err := os.ReadFile(filepath.Join("../..", m[1]))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, n := range name.FindAllStringSubmatch(m[2], -1) {
			names++
			declared := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |var )` + n[1] + `\b|^\t` + n[1] + `\s+=`)
			if !declared.Match(code) {
				t.Errorf("%s does not declare %s", m[1], n[1])
			}
		}
	}
	if files < 50 || names < 50 {
		t.Errorf("got %d files and %d names, want at least 50 of each", files, names)
	}
}

var (
	referenceTotal = regexp.MustCompile(`(?m)^\| (\d)\. [^|]*\| (\d+) \|$`)
	referenceRow   = regexp.MustCompile(`(?m)^- ((?:\d\.\d+(?:, )?)+) (.+)$`)
	inBackticks    = regexp.MustCompile("`([^`]+)`")

	// elsewhere are names that other programs, or pages in the same cell, define.
	elsewhere = regexp.MustCompile(`^(?:(?:GET|POST|DELETE) /\S+|/get-memory|uuid|get_status|localhost|key:|X-Graphiti-\S+(?: off)?|GRAPHITI_URL|graphiti_<scope>_<hash>|<graphiti_memory>|error|title)$`)
)

// TestReferences: docs/references.md has each feature of the five documents once, and the
// files, settings, metrics and commands that it names exist.
func TestReferences(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	read := func(name string) string {
		t.Helper()
		b := helptest.File(t, filepath.Join(root, name))
		return string(b)
	}
	page, metrics := read("docs/references.md"), read("docs/metrics.md")
	settings := make(map[string]bool)
	for _, k := range new(config.Config).Settings() {
		settings[k.Key] = true
	}
	rows := make(map[string]bool)
	for _, m := range referenceRow.FindAllStringSubmatch(page, -1) {
		for number := range strings.SplitSeq(m[1], ", ") {
			if rows[number] {
				t.Errorf("%s occurs twice", number)
			}
			rows[number] = true
		}
		if _, place, ok := strings.Cut(m[2], ": "); !ok || place == "" {
			t.Errorf("%s: got %q, want a place or a reason", m[1], m[2])
		}
		for _, name := range inBackticks.FindAllStringSubmatch(m[2], -1) {
			switch name := name[1]; {
			case settings[name]:
			case strings.HasPrefix(name, "graphiti_proxy_") && strings.Contains(metrics, "| `"+name+"` |"):
			case strings.HasPrefix(name, "graphiti-proxy "):
				if c, _, err := newRootCommand().Find(strings.Fields(name)[1:]); err != nil || !c.HasParent() {
					t.Errorf("%s: %s is no command: %v", m[1], name, err)
				}
			case elsewhere.MatchString(name):
			default:
				if _, err := os.Stat(filepath.Join(root, name)); err != nil || !strings.Contains(name, "/") {
					t.Errorf("%s: %s is neither a setting, nor a metric, a command or a file", m[1], name)
				}
			}
		}
	}
	total := 0
	for _, m := range referenceTotal.FindAllStringSubmatch(page, -1) {
		n, err := strconv.Atoi(m[2])
		must(t, err)
		for i := range n {
			if number := m[1] + "." + strconv.Itoa(i+1); !rows[number] {
				t.Errorf("%s is missing", number)
			}
		}
		total += n
	}
	if total != len(rows) || total != 264 {
		t.Errorf("got %d rows, and %d in the overview, want 264", len(rows), total)
	}
}

// TestManPagesAreCurrent: to update the pages, run UPDATE=1 go test
// ./cmd/graphiti-proxy -run ManPages.
func TestManPagesAreCurrent(t *testing.T) {
	dir := filepath.Join("..", "..", "deploy", "man")
	if os.Getenv("UPDATE") != "" {
		must(t, os.RemoveAll(dir))
		must(t, os.MkdirAll(dir, 0o755))
	}
	want := t.TempDir()
	root := newRootCommand()
	// Else the pages of shells depend on the version of the library.
	root.CompletionOptions = cobra.CompletionOptions{DisableDefaultCmd: true}
	root.DisableAutoGenTag = true
	edition := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	header := &doc.GenManHeader{Title: "GRAPHITI-PROXY", Section: "1", Source: "graphiti-proxy", Manual: "graphiti-proxy", Date: &edition}
	must(t, doc.GenManTree(root, header, want))
	pages, err := os.ReadDir(want)
	if err != nil || len(pages) < 20 {
		t.Fatalf("got %v, %v, want no error, at least 20 of them", len(pages), err)
	}
	for _, p := range pages {
		fresh := helptest.File(t, filepath.Join(want, p.Name()))
		at := filepath.Join(dir, p.Name())
		if os.Getenv("UPDATE") != "" {
			must(t, os.WriteFile(at, fresh, 0o644))
		}
		if kept, err := os.ReadFile(at); err != nil || !bytes.Equal(kept, fresh) {
			t.Errorf("%s is not current: %v", at, err)
		}
	}
	if kept, err := os.ReadDir(dir); err != nil || len(kept) != len(pages) {
		t.Errorf("%d pages, want %d: %v", len(kept), len(pages), err)
	}
}

// TestHelp: every command has a usage and a summary, and each file in help belongs to one.
func TestHelp(t *testing.T) {
	t.Parallel()
	commands := make(map[string]bool)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Use == "" || c.Short == "" {
			t.Errorf("%s: got usage %q and summary %q, want both", c.CommandPath(), c.Use, c.Short)
		}
		commands[strings.ReplaceAll(c.CommandPath(), " ", "-")] = true
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := newRootCommand()
	walk(root)
	files, err := fs.Glob(help, "help/*.txt")
	must(t, err)
	for _, file := range files {
		name := root.Name() + "-" + strings.TrimSuffix(strings.TrimPrefix(file, "help/"), ".txt")
		if !commands[name] {
			t.Errorf("%s: got no command %s, want one", file, name)
		}
	}
}
