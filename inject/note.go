package inject

import (
	"regexp"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Note lists a turn's work, read from its tool calls and messages.
type Note struct {
	Files  []string   // touched files, the latest last
	Errors []string   // reported errors
	Tasks  []noteTask // the last task list
}

type noteTask struct {
	Text string
	Done bool
}

const (
	maxNoted     = 32 << 10 // bytes read from the end of a turn
	maxNoteFiles = 10       // limit for a note and a snapshot
	maxErrors    = 3
	maxTasks     = 8
	noteLength   = 160 // characters of a line
)

// Tool arguments and results are JSON, or JSON in a string with escaped quotes.
var (
	noteFile  = regexp.MustCompile(`\\?"(?:file_path|filePath|path|filename|notebook_path|target_file)\\?"\s*:\s*\\?"([^"\\]{1,200})\\?"`)
	noteError = regexp.MustCompile(`(?:\\n|")\s*((?:[Ee]rror|ERROR|FAIL|panic:|fatal:|[A-Za-z]+(?:Error|Exception):)[^"\\]{3,160})`)
	taskFirst = regexp.MustCompile(`\\?"(?:content|step|task)\\?"\s*:\s*\\?"([^"\\]{3,200})\\?"[^{}]{0,200}?\\?"status\\?"\s*:\s*\\?"(\w+)`)
	taskLast  = regexp.MustCompile(`\\?"status\\?"\s*:\s*\\?"(\w+)\\?"[^{}]{0,200}?\\?"(?:content|step|task)\\?"\s*:\s*\\?"([^"\\]{3,200})\\?"`)
)

// NoteOf returns the body after the person's newest message, or nil if that message has no
// answer. NoteOf is cheap; parsing by ReadNote is not.
func NoteOf(c *dialect.Conversation) []byte {
	if c.Last < 0 || !c.Answered() {
		return nil
	}
	tail := c.Behind(c.Last)
	return tail[max(0, len(tail)-maxNoted):]
}

// ReadNote parses a turn's work.
func ReadNote(tail []byte) (n Note) {
	for _, m := range noteFile.FindAllSubmatch(tail, -1) {
		n.Files = latestOf(n.Files, string(m[1]), maxNoteFiles)
	}
	for _, m := range noteError.FindAllSubmatch(tail, -1) {
		n.Errors = latestOf(n.Errors, noteLine(string(m[1])), maxErrors)
	}
	add := func(text, status string) {
		text, done := noteLine(text), status == "completed" || status == "done" || status == "cancelled"
		n.Tasks = slices.DeleteFunc(n.Tasks, func(t noteTask) bool { return t.Text == text })
		n.Tasks = append(n.Tasks, noteTask{text, done})
	}
	for _, m := range taskFirst.FindAllSubmatch(tail, -1) {
		add(string(m[1]), string(m[2]))
	}
	if n.Tasks == nil {
		for _, m := range taskLast.FindAllSubmatch(tail, -1) {
			add(string(m[2]), string(m[1]))
		}
	}
	if len(n.Tasks) > maxTasks {
		n.Tasks = n.Tasks[len(n.Tasks)-maxTasks:]
	}
	return n
}

// latestOf moves or adds s to the end of a list and drops the oldest items.
func latestOf(list []string, s string, most int) []string {
	list = append(slices.DeleteFunc(list, func(o string) bool { return o == s }), s)
	return list[max(0, len(list)-most):]
}

// noteLine returns a text as one line of limited length.
func noteLine(s string) string {
	var line []byte
	for word := range strings.FieldsSeq(s) {
		if len(line) > 0 {
			line = append(line, ' ')
		}
		if line = append(line, word...); len(line) > noteLength {
			return strings.ToValidUTF8(string(line[:noteLength]), "") + "…"
		}
	}
	return string(line)
}
