package inject

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Ended is a finished turn of a session, or another finished request. Said is a person's words
// in a turn, and a model's in the others. Answered is always a model's.
type Ended struct {
	By             Asker
	Said, Answered string
}

// Asker is the author of a finished request.
type Asker int

// The askers.
const (
	ByPerson   Asker = iota
	ByAgent          // a subagent's task, with its result
	ForSummary       // the client had its history summarized
)

// child is the last task of a subagent.
type child struct {
	Asked  string `json:"asked"`
	Result string `json:"result"` // its final answer
}

const (
	noteTime    = 10 * time.Second // limit of a change of a session's notes
	maxChildren = 4
	maxListed   = 8 // points of each list from a client's summary
)

// Remember adds a finished request to the short-term memory of its session. It may wait for a
// file, so requests must not call it.
func (m *Planner) Remember(who graphiti.Who, generation int64, e Ended) {
	if who.Session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(m.base, noteTime)
	defer cancel()
	// Redact first: joined and truncated lines hide credentials from redaction.
	e.Said, _ = m.opts().Redact(e.Said, time.Time{})
	e.Answered, _ = m.opts().Redact(e.Answered, time.Time{})
	leaves := false
	decided := e.By == ByPerson && len(e.Said) <= maxDecided && m.opts().Decides(ctx, e.Said)
	err := m.note(ctx, who, generation, func(s *snapshot) {
		switch e.By {
		case ByPerson:
			s.add(e.Said, decided)
		case ByAgent:
			s.addChild(e.Said, e.Answered)
		case ForSummary:
			s.addSummary(e.Answered)
		}
		leaves = e.By != ByAgent && s.Tells && len(s.Decided)+len(s.Files)+len(s.open())+len(s.Listed.Open) > 0
	})
	if err != nil {
		m.opts().Log.Debug("write session snapshot failed", "error", err)
		return
	}
	if leaves {
		m.rememberLast(ctx, who, generation, m.scopes(who))
	}
}

// addChild records a subagent's task. The same task again replaces its result.
func (s *snapshot) addChild(asked, result string) {
	c := child{noteLine(asked), noteLine(result)}
	s.Children = slices.DeleteFunc(s.Children, func(o child) bool { return o.Asked == c.Asked })
	s.Children = append(s.Children, c)
	s.Children = s.Children[max(0, len(s.Children)-maxChildren):]
}

// addSummary records the points of a client's summary: its words, never the person's. A point
// that it reports as done is closed; an absent one stays.
func (s *snapshot) addSummary(text string) {
	sum := words.ReadSummary(text)
	add := func(list, points []string) []string {
		for _, p := range points[:min(len(points), maxListed)] {
			list = latestOf(list, noteLine(p), maxListed)
		}
		return list
	}
	s.Listed.About = cmp.Or(noteLine(sum.About), s.Listed.About)
	s.Listed.Decided = add(s.Listed.Decided, sum.Decided)
	s.Listed.Open = add(s.Listed.Open, sum.Open)
	var done []map[string]bool
	for _, p := range sum.Done {
		done = append(done, statementWords(noteLine(p)))
	}
	closed := func(point string) bool { return alike(statementWords(point), done) }
	s.Listed.Open = slices.DeleteFunc(s.Listed.Open, closed)
	for i := range s.Work.Tasks {
		t := &s.Work.Tasks[i]
		t.Done = t.Done || closed(t.Text)
	}
}
