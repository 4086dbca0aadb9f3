package inject

import (
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// child is the last task of a subagent.
type child struct {
	Asked  string   `json:"asked"`
	Result string   `json:"result"` // its final answer
	Errors []string `json:"errors,omitempty"`
}

const maxChildren = 4

// addChild records a subagent's turn. The same task again replaces its result.
func (s *snapshot) addChild(n Note, asked, result string) {
	c := child{noteLine(asked), noteLine(result), n.Errors}
	s.Children = slices.DeleteFunc(s.Children, func(o child) bool { return o.Asked == c.Asked })
	s.Children = append(s.Children, c)
	s.Children = s.Children[max(0, len(s.Children)-maxChildren):]
	for _, f := range n.Files {
		s.Files = latestOf(s.Files, f, maxNoteFiles)
	}
}

// RememberChild adds a subagent's finished turn to the short-term memory of the session that it
// belongs to: the model's words, never the person's. work comes from NoteOf. It may wait for a
// file, so requests must not call it.
func (m *Planner) RememberChild(who graphiti.Who, generation int64, work []byte, asked, result string) {
	done, _ := m.opts().Redact(string(work), time.Time{})
	asked, _ = m.opts().Redact(asked, time.Time{})
	result, _ = m.opts().Redact(result, time.Time{})
	m.remember(who, generation, func(s *snapshot) { s.addChild(ReadNote([]byte(done)), asked, result) })
}
