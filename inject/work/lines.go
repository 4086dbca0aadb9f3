package work

import (
	"fmt"
	"strings"
)

// quoted returns a foreign text in quotes, from which it cannot escape.
func quoted(s string) string {
	return `"` + strings.ReplaceAll(s, `"`, "'") + `"`
}

// String describes a command in a line.
func (c *Command) String() string {
	line := "ran " + quoted(c.Text) + ": "
	if c.Before != "" {
		line += quoted(c.Before) + ", later "
	}
	switch {
	case c.Summary != "":
		line += quoted(c.Summary)
	case c.Outcome == "":
		line += "outcome unknown"
	default:
		line += string(c.Outcome)
	}
	if c.Code != 0 {
		line += fmt.Sprintf(" (exit %d)", c.Code)
	}
	if c.Count > 1 {
		line += fmt.Sprintf(", ran %d times", c.Count)
	}
	return line
}

// Lines describes a turn.
func (t *Record) Lines() (lines []string) {
	for i := range t.Commands {
		lines = append(lines, t.Commands[i].String())
	}
	if len(t.Changed) > 0 {
		lines = append(lines, "changed: "+strings.Join(t.Changed, ", "))
	}
	for _, open := range t.Open {
		lines = append(lines, "open: "+quoted(open)+" (the agent's list)")
	}
	return lines
}
