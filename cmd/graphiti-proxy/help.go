package main

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed help
var help embed.FS

// described returns a command with the texts of a file in help: its usage and summary, its
// description, and its examples.
func described(name string) *cobra.Command {
	text, _ := help.ReadFile("help/" + name + ".txt") // TestHelp reads each file
	use, rest, _ := strings.Cut(string(text), "\n")
	short, rest, _ := strings.Cut(rest, "\n")
	long, examples, _ := strings.Cut(rest, "\nExamples:\n")
	return &cobra.Command{Use: use, Short: short, Long: strings.TrimSpace(long), Example: strings.TrimRight(examples, "\n")}
}

func describedGroup(name string, commands ...*cobra.Command) *cobra.Command {
	c := described(name)
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(commands...)
	return c
}
