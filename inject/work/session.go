package work

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Limits of a record.
const (
	maxTurn     = 1536 // bytes of a turn in JSON
	maxSession  = 6 << 10
	maxCommands = 8
	maxChanged  = 10
	maxOpen     = 8
)

// Session is the work of one session, the newest turn last. The zero value is ready.
type Session struct {
	Turns  []Record       `json:"turns,omitempty"`
	Tasks  []dialect.Task `json:"tasks,omitempty"`  // the agent's last list
	States bool           `json:"states,omitempty"` // the client states exit codes
	Always bool           `json:"always,omitempty"` // each result of a command that ran shows it
}

// Record is the work of one turn.
type Record struct {
	ID       string    `json:"id"`
	At       int64     `json:"at"` // Unix seconds of the last round
	Commands []Command `json:"commands,omitempty"`
	Changed  []string  `json:"changed,omitempty"`
	Open     []string  `json:"open,omitempty"`
	Round    uint64    `json:"round,omitempty"` // hash of the last round, which a client may send again
}

// Command is a command with its last outcome in a turn.
type Command struct {
	Text    string `json:"text"`
	Outcome Exit   `json:"outcome,omitempty"`
	Code    int    `json:"code,omitempty"`
	Count   int    `json:"count,omitempty"`   // how often it ran, from 2 on
	Summary string `json:"summary,omitempty"` // line of a test run
	Before  string `json:"before,omitempty"`  // an earlier summary, or outcome
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
func (s *Session) Add(r *Round) {
	hash := r.hash()
	if slices.ContainsFunc(s.Turns, func(t Record) bool { return t.Round == hash }) {
		return
	}
	t := s.turn(r.Turn)
	t.Round, t.At = hash, r.At.Unix()
	if r.Redact == nil {
		r.Redact = func(text string) string { return text }
	}
	for i := range r.Calls {
		c := &r.Calls[i]
		d, result := c.Action(), r.resultOf(i)
		if d.IsList && !result.Failed && !r.Agent {
			s.Tasks = r.capped(d.Tasks)
		}
		for k, command := range d.Commands {
			s.ran(t, r, command, outcomeOf(result, k, len(d.Commands), s.States, r.Redact))
		}
		if d.Changed != nil && !result.Failed && outcomeOf(result, 0, 1, false, r.Redact).outcome != Failed {
			t.changed(d.Changed, r)
		}
	}
	t.Open = nil
	for _, task := range s.Tasks {
		if !task.Done {
			t.Open = append(t.Open, task.Text)
		}
	}
	t.shrink()
	for len(s.Turns) > 1 && sizeOf(s) > maxSession {
		s.Turns = s.Turns[1:]
	}
}

// capped returns the last tasks of a list, redacted and shortened.
func (r *Round) capped(tasks []dialect.Task) (list []dialect.Task) {
	for _, t := range tasks[max(0, len(tasks)-maxOpen):] {
		list = append(list, dialect.Task{Text: graphiti.OneLine(r.Redact(t.Text), taskLength), Done: t.Done})
	}
	return list
}

// turn returns the turn with an ID, and makes it the newest.
func (s *Session) turn(id string) *Record {
	t := Record{ID: id}
	if i := slices.IndexFunc(s.Turns, func(t Record) bool { return t.ID == id }); i >= 0 {
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
func (s *Session) ran(t *Record, r *Round, raw string, o output) {
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
	if o.outcome != Failed && !refused {
		t.changed(written(raw), r)
	}
	if isLook(text) {
		o.summary = ""
	}
	t.command(text, &o)
}

// command adds a command to a turn, or updates it.
func (t *Record) command(text string, o *output) {
	c := Command{Text: text, Outcome: o.outcome, Code: o.code, Summary: graphiti.OneLine(o.summary, lineLength/2)}
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
func (t *Record) changed(files []string, r *Round) {
	for _, f := range files {
		if f = place(r.Redact(f), r.Directory); f != "" {
			t.Changed = latest(t.Changed, f, maxChanged)
		}
	}
}

// latest moves or adds an item to the end of a list, and drops the oldest.
func latest(list []string, item string, most int) []string {
	list = append(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item }), item)
	return list[max(0, len(list)-most):]
}

// shrink drops the least telling items of a turn until it fits.
func (t *Record) shrink() {
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

func sizeOf(v any) int {
	text, _ := json.Marshal(v) // strings and numbers only
	return len(text)
}
