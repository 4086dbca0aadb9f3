package inject

import (
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Note lists a turn's work.
type Note struct {
	Files  []string   // changed files, the latest last
	Errors []string   // errors that are not cured
	Tasks  []noteTask // the last task list
}

type noteTask = dialect.Task

const (
	maxNoteFiles = 10  // limit for a note and a snapshot
	noteLength   = 160 // characters of a line
)

// latestOf moves or adds s to the end of a list and drops the oldest items.
func latestOf(list []string, s string, most int) []string {
	list = append(slices.DeleteFunc(list, func(o string) bool { return o == s }), s)
	return list[max(0, len(list)-most):]
}

// noteLine returns a text as one line of limited length.
func noteLine(s string) string { return graphiti.OneLine(s, noteLength) }
