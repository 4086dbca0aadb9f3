package main

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

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
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := root.Name() + "-" + strings.TrimSuffix(strings.TrimPrefix(file, "help/"), ".txt")
		if !commands[name] {
			t.Errorf("%s: got no command %s, want one", file, name)
		}
	}
}
