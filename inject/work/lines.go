package work

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// day returns a date for a line.
func day(at int64) string { return time.Unix(at, 0).Local().Format(time.DateOnly) }

// quoted returns a foreign text in quotes, from which it cannot escape.
func quoted(s string) string {
	return `"` + strings.ReplaceAll(s, `"`, "'") + `"`
}

// String describes a cure in a line.
func (c *Cure) String() string {
	line := "error " + quoted(c.Line) + " of " + quoted(c.Command) + ", " + day(c.At) + ": " + c.How.describe(c.Changed, c.With)
	if c.Back > 0 {
		line += "; did not last: it was back on " + day(c.Back)
	}
	return line
}

// describe describes the way in which an error went away.
func (h How) describe(changed []string, with string) string {
	switch files := strings.Join(changed, ", "); h {
	case Edited:
		return "gone after " + files + " changed (the same command passed)"
	case Unseen:
		return "not seen again after " + files + " changed (the same command ran; its outcome is unknown)"
	case Rerun:
		return "passed on a second run, nothing changed"
	case Other:
		return quoted(with) + " worked"
	case Unsure:
		return "the same command ran again; its outcome is unknown"
	}
	return "not cured"
}

// String describes a passing command in a line.
func (p *Pass) String() string {
	line := quoted(p.Command) + " passed on " + day(p.At)
	if p.Summary != "" {
		line = "tests here: " + line
	}
	if p.Count > 1 {
		line += " (" + strconv.Itoa(p.Count) + " times)"
	}
	if p.Failed > 0 {
		line = strings.Replace(line, " passed on ", " failed on "+day(p.Failed)+", had passed on ", 1)
	}
	return line
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

// String describes an error in a line.
func (e *Error) String() string {
	return "error " + quoted(e.Line) + " of " + quoted(e.Command) + ": " + e.How.describe(e.Changed, e.With)
}

// String describes a subagent's result in a line.
func (f *Finding) String() string {
	return "subagent asked " + quoted(f.Asked) + ", " + day(f.At) + ", answered " + quoted(f.Result)
}

// Lines describes a turn.
func (t *Turn) Lines() (lines []string) {
	for i := range t.Commands {
		lines = append(lines, t.Commands[i].String())
	}
	if len(t.Changed) > 0 {
		lines = append(lines, "changed: "+strings.Join(t.Changed, ", "))
	}
	for i := range t.Errors {
		lines = append(lines, t.Errors[i].String())
	}
	for i := range t.Found {
		lines = append(lines, t.Found[i].String())
	}
	for _, open := range t.Open {
		lines = append(lines, "open: "+quoted(open)+" (the agent's list)")
	}
	return lines
}
