package transcripts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Notes is a file in which a client or its person keeps instructions and facts.
type Notes struct {
	Client string
	File   string
	Dir    string // directory of the project; "" for the person's
	At     time.Time
	Lines  []string // statements, each in one line
}

// The markers of the proxy's own lines in such a file, which are no notes.
const (
	SectionBegin = "<!-- graphiti-proxy: begin -->\n"
	SectionEnd   = "<!-- graphiti-proxy: end -->\n"
)

const (
	maxNotesFile = 1 << 20 // bytes
	maxNotes     = 24      // lines of a file
	maxNote      = 200     // characters
	minNote      = 3       // words
)

// Notes returns the clients' notes for the person, and for projects with the directories dirs.
func (h Home) Notes(dirs []string) (all []Notes) {
	for i := range clients {
		c := &clients[i]
		for _, pattern := range c.Notes {
			all = append(all, notesIn(c.name, "", filepath.Join(escape(h.dirOf(c)), pattern))...)
		}
		for _, dir := range dirs {
			slug := notSlug.ReplaceAllString(dir, "-") // Claude Code's name of a project's directory
			for _, pattern := range c.SlugNotes {
				all = append(all, notesIn(c.name, dir, filepath.Join(escape(h.dirOf(c)), "projects", slug, pattern))...)
			}
			for _, name := range c.ProjectNotes {
				all = append(all, notesIn(c.name, dir, filepath.Join(escape(dir), name))...)
			}
		}
	}
	return all
}

var notSlug = regexp.MustCompile(`[^a-zA-Z0-9]`)

// notesIn reads the files that match a pattern. It skips links and large files.
func notesIn(client, dir, pattern string) (all []Notes) {
	files, _ := filepath.Glob(pattern) // the pattern is valid
	for _, file := range files {
		info, err := os.Lstat(file)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxNotesFile {
			continue
		}
		text, err := (&source{path: file}).text()
		if lines := noteLines(string(text)); err == nil && len(lines) > 0 {
			all = append(all, Notes{client, file, dir, info.ModTime(), lines})
		}
	}
	return all
}

var (
	notNotes = regexp.MustCompile("(?ms)" + SectionBegin + ".*?" + SectionEnd + "|\\A---\n.*?\n---\n|^```.*?^```|<!--.*?-->") // our lines, a head, code, and comments
	noteItem = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])?\s*(?:\[[ xX]\]\s+)?(.+?)\s*$`)
)

// noteLines returns the list items and the paragraphs of one line in a text of Markdown.
func noteLines(text string) (lines []string) {
	text = notNotes.ReplaceAllString(strings.ReplaceAll(text, "\r", ""), "\n")
	for line := range strings.Lines(text) {
		m := noteItem.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || strings.ContainsAny(m[1][:1], "#|@<>") || strings.HasSuffix(m[1], ":") || strings.Contains(m[1], "](") {
			continue // a heading, a row, an imported file, markup, or a link
		}
		if n := utf8.RuneCountInString(m[1]); n > maxNote || len(strings.Fields(m[1])) < minNote || slices.Contains(lines, m[1]) {
			continue
		}
		if lines = append(lines, m[1]); len(lines) == maxNotes {
			break
		}
	}
	return lines
}
