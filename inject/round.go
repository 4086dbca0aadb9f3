package inject

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	commandLength = 120
	taskLength    = 120
	maxTasks      = 8
	codeWithin    = 400 // bytes of each end of an output in which a client states the exit code
)

// Round is one tool round.
type Round struct {
	Directory string // of the project, or ""
	Calls     []dialect.Call
	Results   []dialect.Result
}

// Done is the work in a round.
type Done struct {
	Lines   []string // about commands and changed files
	Changed []string // files
	Tasks   []dialect.Task
	IsList  bool // Tasks replaces the agent's list
}

// Read returns the work in a tool round, without credentials. The round is foreign text.
func (m *Planner) Read(r *Round) Done {
	return r.read(func(text string) string {
		text, _ = m.opts().Redact(text, time.Time{})
		return text
	})
}

func (r *Round) read(redact func(text string) string) (d Done) {
	for i := range r.Calls {
		action, result := r.Calls[i].Action(), r.resultOf(i)
		if action.IsList && !result.Failed {
			d.IsList, d.Tasks = true, nil
			for _, t := range action.Tasks[max(0, len(action.Tasks)-maxTasks):] {
				d.Tasks = append(d.Tasks, dialect.Task{Text: graphiti.OneLine(redact(t.Text), taskLength), Done: t.Done})
			}
		}
		says, failed := exitOf(result)
		if len(action.Commands) > 1 && !failed { // one result for all
			says = outcomeUnknown
		}
		for _, raw := range action.Commands {
			raw = redact(raw) // before lines are cut
			if text := cleaned(raw, r.Directory); !isLook(text) {
				d.Lines = append(d.Lines, "ran \""+strings.ReplaceAll(text, `"`, "'")+`": `+says)
			}
			action.Changed = append(action.Changed, changedBy(raw)...)
		}
		for _, f := range action.Changed {
			if f = pathInProject(redact(f), r.Directory); f != "" && !failed && !slices.Contains(d.Changed, f) {
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

const outcomeUnknown = "outcome unknown"

var exitCode = regexp.MustCompile(`(?i)(?:\bexit(?:ed)?[ _]?(?:with )?(?:code|status)|\breturn_?code)\)?\\?"?:? ?(-?\d{1,10})\b`)

// exitOf describes the outcome of a call. It is unknown if the client states none: many
// clients do not report that a command failed.
func exitOf(r *dialect.Result) (says string, failed bool) {
	ends := r.Text[:min(len(r.Text), codeWithin)] + "\n" + r.Text[max(0, len(r.Text)-codeWithin):]
	all := exitCode.FindAllStringSubmatch(ends, -1)
	if all == nil && r.Failed {
		return "failed", true
	} else if all == nil {
		return outcomeUnknown, false
	}
	switch code, _ := strconv.Atoi(all[len(all)-1][1]); {
	case code != 0:
		return fmt.Sprintf("failed (exit %d)", code), true
	case r.Failed:
		return "failed", true
	}
	return "passed", false
}

// Worked adds the work in a tool round to the notes of its session. It may wait for a file, so
// requests must not call it.
func (m *Planner) Worked(who graphiti.Who, generation int64, d *Done) {
	if who.Session == "" || len(d.Changed) == 0 && !d.IsList {
		return
	}
	ctx, cancel := context.WithTimeout(m.base, noteTime)
	defer cancel()
	err := m.note(ctx, who, generation, func(s *snapshot) {
		if d.IsList {
			s.Work.Tasks = d.Tasks
		}
		for _, f := range d.Changed {
			s.Files = latestOf(s.Files, f, maxNoteFiles)
		}
	})
	if err != nil {
		m.opts().Log.Debug("write session snapshot failed", "error", err)
	}
}
