package work

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Limits of a record.
const (
	maxTurn     = 1536 // bytes of a turn in JSON
	maxSession  = 6 << 10
	maxCommands = 8
	maxChanged  = 10
	maxErrors   = 3
	maxFound    = 3
	maxOpen     = 8
	maxCaused   = 3 // files changed between an error and its end
	maxFailures = 4 // open failures of a session
)

// Session is the work of one session, the newest turn last. The zero value is ready.
type Session struct {
	Turns    []Turn         `json:"turns,omitempty"`
	Tasks    []dialect.Task `json:"tasks,omitempty"`    // the agent's last list
	Failures []Failure      `json:"failures,omitempty"` // commands that have not passed since
	States   bool           `json:"states,omitempty"`   // the client states exit codes
	Always   bool           `json:"always,omitempty"`   // each result of a command that ran shows it
}

// Turn is the work of one turn.
type Turn struct {
	ID       string    `json:"id"`
	At       int64     `json:"at"` // Unix seconds of the last round
	Commands []Command `json:"commands,omitempty"`
	Changed  []string  `json:"changed,omitempty"`
	Errors   []Error   `json:"errors,omitempty"`
	Open     []string  `json:"open,omitempty"`
	Found    []Finding `json:"found,omitempty"`
	Round    uint64    `json:"round,omitempty"` // hash of the last round, which a client may send again
}

// Command is a command with its last outcome in a turn.
type Command struct {
	Text    string  `json:"text"`
	Outcome Outcome `json:"outcome,omitempty"`
	Code    int     `json:"code,omitempty"`
	Count   int     `json:"count,omitempty"`   // how often it ran, from 2 on
	Summary string  `json:"summary,omitempty"` // line of a test run
	Before  string  `json:"before,omitempty"`  // an earlier summary, or outcome
}

// Error is an error of a turn. How is empty if it was not cured.
type Error struct {
	Line    string   `json:"line"`
	Command string   `json:"command"`
	How     How      `json:"how,omitempty"`
	With    string   `json:"with,omitempty"`    // the other command
	Changed []string `json:"changed,omitempty"` // files changed in between
}

// How is the way in which an error went away.
type How string

// The ways in which an error goes away.
const (
	Edited How = "edited" // the same command passed after files had changed
	Rerun  How = "rerun"  // the same command passed, and nothing had changed
	Other  How = "other"  // another command passed
	Unseen How = "unseen" // the same command ran without it after files had changed; its outcome is unknown
	Unsure How = "unsure" // the same command ran again, and its outcome is unknown: the error is open
)

// Failure is a command that failed and has not passed since.
type Failure struct {
	Command string   `json:"command"`
	Key     string   `json:"key"`
	Line    string   `json:"line"`
	Changed []string `json:"changed,omitempty"` // files changed since
	Env     uint32   `json:"env,omitempty"`     // hash of the command's assignments
}

// Cure is an error with the event that ended it.
type Cure struct {
	Key     string   `json:"key"`
	Line    string   `json:"line"`
	Command string   `json:"command"`
	How     How      `json:"how"`
	With    string   `json:"with,omitempty"`    // the other command
	Changed []string `json:"changed,omitempty"` // files changed in between
	At      int64    `json:"at"`
	Back    int64    `json:"back,omitempty"` // Unix seconds of its return
}

// Pass is the last result of a command in a project, but not of one that only writes a file.
type Pass struct {
	Command string `json:"command"`
	Summary string `json:"summary,omitempty"` // of a test run
	Count   int    `json:"count"`
	At      int64  `json:"at"`
	Failed  int64  `json:"failed,omitempty"` // Unix seconds of a later failure
}

// Finding is the result of a subagent's task, in the words of models.
type Finding struct {
	Asked  string `json:"asked"`
	Result string `json:"result"`
	Task   uint64 `json:"task"` // hash of the whole task: many have one beginning
	At     int64  `json:"at"`
}

// News is the result of a round, or of a subagent, for the project.
type News struct {
	Passed []Pass
	Cures  []Cure
	Failed []Failure
	Found  []Finding
}

// Round is one tool round.
type Round struct {
	Turn      string // ID
	At        time.Time
	Directory string // of the project, or ""
	Agent     bool   // of a subagent: its list of tasks is not the session's
	Calls     []dialect.Call
	Results   []dialect.Result

	Redact func(text string) string // nil if the texts hold no credentials
}

// Add adds a round to the session.
func (s *Session) Add(r *Round) (n News) {
	hash := r.hash()
	if slices.ContainsFunc(s.Turns, func(t Turn) bool { return t.Round == hash }) {
		return n
	}
	t := s.turn(r.Turn)
	t.Round, t.At = hash, r.At.Unix()
	if r.Redact == nil {
		r.Redact = func(text string) string { return text }
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		d, result := c.Deed(), r.resultOf(i)
		if d.IsList && !result.Failed && !r.Agent {
			s.Tasks = r.capped(d.Tasks)
		}
		for k, command := range d.Commands {
			s.ran(t, r, command, outcomeOf(result, k, len(d.Commands), s.States, r.Redact), &n)
		}
		if d.Changed != nil && !result.Failed && outcomeOf(result, 0, 1, false, r.Redact).outcome != Failed {
			s.changed(t, d.Changed, r)
		}
	}
	t.Open = nil
	for _, task := range s.Tasks {
		if !task.Done {
			t.Open = append(t.Open, task.Text)
		}
	}
	t.shrink()
	s.shrink()
	return n
}

// capped returns the last tasks of a list, redacted and shortened.
func (r *Round) capped(tasks []dialect.Task) (list []dialect.Task) {
	for _, t := range tasks[max(0, len(tasks)-maxOpen):] {
		list = append(list, dialect.Task{Text: oneLine(r.Redact(t.Text), taskLength), Done: t.Done})
	}
	return list
}

// Find adds the result of a subagent to its turn. directory is the project's, or "".
func (s *Session) Find(turn, directory, asked, result string, at time.Time) (n News) {
	f := Finding{oneLine(scrubbed(asked, directory), taskLength), oneLine(scrubbed(result, directory), resultLength), hashOf(asked), at.Unix()}
	t := s.turn(turn)
	t.At = f.At
	t.Found = slices.DeleteFunc(t.Found, func(o Finding) bool { return o.Task == f.Task })
	t.Found = append(t.Found[max(0, len(t.Found)-maxFound+1):], f)
	t.shrink()
	s.shrink()
	n.Found = []Finding{f}
	return n
}

// turn returns the turn with an ID, and makes it the newest.
func (s *Session) turn(id string) *Turn {
	t := Turn{ID: id}
	if i := slices.IndexFunc(s.Turns, func(t Turn) bool { return t.ID == id }); i >= 0 {
		t = s.Turns[i]
		s.Turns = slices.Delete(s.Turns, i, i+1)
	}
	s.Turns = append(s.Turns, t)
	return &s.Turns[len(s.Turns)-1]
}

func (r *Round) hash() uint64 {
	var all []string
	for _, c := range r.Calls {
		all = append(all, c.ID, c.Name, c.Arguments)
	}
	for _, res := range r.Results {
		all = append(all, res.ID, res.Text)
	}
	return hashOf(all...)
}

func hashOf(texts ...string) uint64 {
	h := fnv.New64a()
	for _, s := range texts {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(s)))) // never fails
		_, _ = h.Write([]byte(s))
	}
	return h.Sum64()
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

// ran records a command.
func (s *Session) ran(t *Turn, r *Round, raw string, o output, n *News) {
	s.States, s.Always = s.States || o.states, s.Always || o.always
	refused := s.Always && !o.ran
	if refused {
		o.outcome = ""
	}
	raw = r.Redact(raw)
	text := cleaned(raw, r.Directory)
	if text == "" {
		return
	}
	files := written(raw)
	if o.outcome != Failed && !refused {
		s.changed(t, files, r)
	}
	if isLook(text) {
		o.summary = ""
	}
	t.command(text, &o)
	switch same := core(text); {
	case isLook(text):
	case o.outcome == "":
		s.unknown(same, &o, t.At, n)
	case o.outcome == Failed:
		f := FaultIn(o.text, true)
		failure := Failure{Command: same, Key: f.Key, Line: f.Line, Env: assignments(raw)}
		n.Failed = append(n.Failed, failure)
		if f.Key == "" {
			return
		}
		if i := slices.IndexFunc(s.Failures, func(old Failure) bool { return old.Command == same && old.Key == f.Key }); i >= 0 {
			s.mark(&s.Failures[i], "", "")
			return
		}
		s.Failures = append(s.Failures[max(0, len(s.Failures)-maxFailures+1):], failure)
		t.Errors = append(t.Errors[max(0, len(t.Errors)-maxErrors+1):], Error{Line: f.Line, Command: same})
	default:
		if writes := len(files) > 0 || heredoc.MatchString(raw); !writes || o.summary != "" {
			n.Passed = append(n.Passed, Pass{Command: same, Summary: oneLine(o.summary, lineLength/2), Count: 1, At: t.At})
		}
		s.cure(same, assignments(raw), t.At, n)
	}
}

// command adds a command to a turn, or updates it.
func (t *Turn) command(text string, o *output) {
	c := Command{Text: text, Outcome: o.outcome, Code: o.code, Summary: oneLine(o.summary, lineLength/2)}
	i := slices.IndexFunc(t.Commands, func(c Command) bool { return c.Text == text })
	if i < 0 {
		t.Commands = append(t.Commands, c)
		return
	}
	was := t.Commands[i]
	if c.Count, c.Before = max(was.Count, 1)+1, was.Before; was.Outcome != c.Outcome {
		if c.Before = was.Summary; c.Before == "" {
			c.Before = string(was.Outcome)
		}
	}
	t.Commands = append(slices.Delete(t.Commands, i, i+1), c)
}

// changed records changed files.
func (s *Session) changed(t *Turn, files []string, r *Round) {
	for _, f := range files {
		if f = place(r.Redact(f), r.Directory); f == "" {
			continue
		}
		t.Changed = latest(t.Changed, f, maxChanged)
		for i := range s.Failures {
			s.Failures[i].Changed = latest(s.Failures[i].Changed, f, maxCaused)
		}
	}
}

// latest moves or adds an item to the end of a list, and drops the oldest.
func latest(list []string, item string, most int) []string {
	list = append(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item }), item)
	return list[max(0, len(list)-most):]
}

// cure ends the failures that a passing command cures: those of the same command, or else
// the newest one of the command with other arguments. A part of the command cures nothing.
func (s *Session) cure(command string, env uint32, at int64, n *News) {
	end := func(f *Failure, how How, with string) { s.end(f, how, with, at, n) }
	s.Failures = slices.DeleteFunc(s.Failures, func(f Failure) bool {
		if f.Command != command {
			return false
		}
		switch {
		case len(f.Changed) > 0:
			end(&f, Edited, "")
		case f.Env != env:
			end(&f, Other, command+" (with other environment variables)")
		default:
			end(&f, Rerun, "")
		}
		return true
	})
	if i := len(s.Failures) - 1; i >= 0 && len(n.Cures) == 0 && isOther(command, s.Failures[i].Command) {
		end(&s.Failures[i], Other, command)
		s.Failures = slices.Delete(s.Failures, i, i+1)
	}
}

// unknown ends the failures of a command that ran after files had changed, if its output has no
// error. Otherwise it is unknown whether they last.
func (s *Session) unknown(command string, o *output, at int64, n *News) {
	gone := o.ended && FaultIn(o.text, false).Key == ""
	s.Failures = slices.DeleteFunc(s.Failures, func(f Failure) bool {
		switch {
		case f.Command != command:
			return false
		case gone && len(f.Changed) > 0:
			s.end(&f, Unseen, "", at, n)
			return true
		}
		s.mark(&f, Unsure, "")
		return false
	})
}

// end records the cure of a failure.
func (s *Session) end(f *Failure, how How, with string, at int64, n *News) {
	n.Cures = append(n.Cures, Cure{Key: f.Key, Line: f.Line, Command: f.Command, How: how, With: with, Changed: f.Changed, At: at})
	s.mark(f, how, with)
}

// mark sets the end of the open errors of a failure.
func (s *Session) mark(f *Failure, how How, with string) {
	for i := range s.Turns {
		for k := range s.Turns[i].Errors {
			if e := &s.Turns[i].Errors[k]; e.Command == f.Command && e.Line == f.Line && (e.How == "" || e.How == Unsure) {
				e.How, e.With, e.Changed = how, with, f.Changed
			}
		}
	}
}

// shrink drops the least telling items of a turn until it fits.
func (t *Turn) shrink() {
	drop := func() bool {
		look := slices.IndexFunc(t.Commands, func(c Command) bool { return isLook(c.Text) })
		fine := slices.IndexFunc(t.Commands, func(c Command) bool { return c.Outcome != Failed && c.Summary == "" })
		switch {
		case look >= 0:
			t.Commands = slices.Delete(t.Commands, look, look+1)
		case fine >= 0 && len(t.Commands) > 1:
			t.Commands = slices.Delete(t.Commands, fine, fine+1)
		case len(t.Commands) > 1:
			t.Commands = t.Commands[1:]
		case len(t.Open) > 1:
			t.Open = t.Open[:len(t.Open)-1]
		case len(t.Changed) > 1:
			t.Changed = t.Changed[1:]
		case len(t.Found) > 1:
			t.Found = t.Found[1:]
		case len(t.Errors) > 1:
			t.Errors = t.Errors[1:]
		default:
			return false
		}
		return true
	}
	for len(t.Commands) > maxCommands || sizeOf(t) > maxTurn {
		if !drop() {
			return
		}
	}
}

// shrink drops turns until the session fits: the oldest without an error first.
func (s *Session) shrink() {
	for len(s.Turns) > 1 && sizeOf(s) > maxSession {
		i := slices.IndexFunc(s.Turns[:len(s.Turns)-1], func(t Turn) bool { return len(t.Errors) == 0 })
		s.Turns = slices.Delete(s.Turns, max(i, 0), max(i, 0)+1)
	}
}

func sizeOf(v any) int {
	text, _ := json.Marshal(v) // strings and numbers only
	return len(text)
}
