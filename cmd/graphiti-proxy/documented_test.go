package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
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
		if err != nil {
			t.Fatal(err)
		}
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
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
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
