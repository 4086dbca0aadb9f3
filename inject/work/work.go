// Package work reads the work of an agent from its tool calls and their results: commands with
// their outcomes, changed files, open tasks. It has no tables of clients and no I/O. Its input
// is foreign text, so callers treat every string as foreign.
package work

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	commandLength = 120
	taskLength    = 120
	maxTasks      = 8
	stated        = 400 // bytes of each end of an output in which a client states the exit code
)

// Round is one tool round.
type Round struct {
	Directory string // of the project, or ""
	Calls     []dialect.Call
	Results   []dialect.Result

	Redact func(text string) string // removes credentials
}

// Done is the work in a round.
type Done struct {
	Lines   []string // about commands and changed files
	Changed []string // files
	Tasks   []dialect.Task
	IsList  bool // Tasks replaces the agent's list
}

// Read returns the work in a round.
func (r *Round) Read() (d Done) {
	for i := range r.Calls {
		action, result := r.Calls[i].Action(), r.resultOf(i)
		if action.IsList && !result.Failed {
			d.IsList, d.Tasks = true, nil
			for _, t := range action.Tasks[max(0, len(action.Tasks)-maxTasks):] {
				d.Tasks = append(d.Tasks, dialect.Task{Text: graphiti.OneLine(r.Redact(t.Text), taskLength), Done: t.Done})
			}
		}
		says, failed := outcomeOf(result)
		if len(action.Commands) > 1 && !failed { // one result for all
			says = unknown
		}
		for _, raw := range action.Commands {
			raw = r.Redact(raw) // before lines are cut
			if text := cleaned(raw, r.Directory); !isLook(text) {
				d.Lines = append(d.Lines, "ran \""+strings.ReplaceAll(text, `"`, "'")+`": `+says)
			}
			action.Changed = append(action.Changed, written(raw)...)
		}
		for _, f := range action.Changed {
			if f = place(r.Redact(f), r.Directory); f != "" && !failed && !slices.Contains(d.Changed, f) {
				d.Changed = append(d.Changed, f)
				d.Lines = append(d.Lines, "changed "+f)
			}
		}
	}
	return d
}

// resultOf returns the result of a call: by its ID, or by its position if there are no IDs.
func (r *Round) resultOf(i int) *dialect.Result {
	for k := range r.Results {
		if res := &r.Results[k]; res.ID == r.Calls[i].ID && (res.ID != "" || k == i) {
			return res
		}
	}
	return &dialect.Result{}
}

const unknown = "outcome unknown"

var exitCode = regexp.MustCompile(`(?i)(?:\bexit(?:ed)?[ _]?(?:with )?(?:code|status)|\breturn_?code)\)?\\?"?:? ?(-?\d{1,10})\b`)

// outcomeOf describes the outcome of a call. It is unknown if the client states none: many
// clients do not report that a command failed.
func outcomeOf(r *dialect.Result) (says string, failed bool) {
	ends := r.Text[:min(len(r.Text), stated)] + "\n" + r.Text[max(0, len(r.Text)-stated):]
	all := exitCode.FindAllStringSubmatch(ends, -1)
	if all == nil && r.Failed {
		return "failed", true
	} else if all == nil {
		return unknown, false
	}
	switch code, _ := strconv.Atoi(all[len(all)-1][1]); {
	case code != 0:
		return fmt.Sprintf("failed (exit %d)", code), true
	case r.Failed:
		return "failed", true
	}
	return "passed", false
}
