package dialect

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Place is a client's working directory and repository, as stated by the client.
type Place struct {
	Directory string // an absolute path; empty if the client states none
	Repo      string // owner/name on GitHub; empty if the client states none

	// Unclear is true if there are several places, perhaps one from a file of the
	// repository, and their authors are unknown.
	Unclear bool
}

// maxPath bounds a path, in bytes.
const maxPath = 4096

// Statements collects the statements of prompts and clients' items about the place. The
// zero value is ready.
type Statements struct {
	prompts stated // in prompts, before quoted files
	quoted  stated // in prompts, after that
	newest  string // by the newest item of the client
	items   claim  // by all its items
	item    bool   // it has written one
	parts   claim  // in texts that may be items, or files that a person attached
}

// merge adds the statements of another prompt.
func (s *Statements) merge(q Statements) {
	s.prompts.merge(q.prompts)
	s.quoted.merge(q.quoted)
}

type stated struct{ dir, repo claim }

func (s *stated) merge(q stated) {
	s.dir.merge(q.dir)
	s.repo.merge(q.repo)
}

// place decides on the client's place. All statements have to agree, because their authors
// are unknown. Quotations from files in a prompt do not count, but a place that only such
// files name is unclear. moves is true if the client changes its directory and states each
// one in an item: then only the newest item counts.
func (s *Statements) place(moves bool) (p Place) {
	switch {
	case s.item:
		agreed := moves || s.items.fits(s.newest) && s.prompts.dir.fits(s.newest)
		p = Place{Directory: s.newest, Unclear: s.newest == "" || !agreed}
	case moves:
	default:
		p = Place{Directory: s.prompts.dir.value, Repo: s.prompts.repo.value, Unclear: s.prompts.dir.several || s.prompts.repo.several}
		p.Unclear = p.Unclear || p.Directory == "" && s.quoted.dir.value != ""
	}
	if p.Unclear || !s.parts.fits(p.Directory) {
		return Place{Unclear: true}
	}
	return p
}

// claim is a value with one or more statements.
type claim struct {
	value   string
	several bool // with different values
}

func (c *claim) add(v string) {
	c.several = c.several || c.value != "" && c.value != v
	c.value = v
}

func (c *claim) merge(q claim) {
	if q.value != "" {
		c.add(q.value)
	}
	c.several = c.several || q.several
}

// fits reports whether there is no statement of another value than v.
func (c *claim) fits(v string) bool { return !c.several && (c.value == "" || c.value == v) }

// state records the directory of a client's item; empty if unclear.
func (s *Statements) state(dir string) {
	s.newest, s.item = dir, true
	s.items.add(dir)
	s.items.several = s.items.several || dir == ""
}

// doubt records the directory of a possible item, or of a file that a person attached.
func (s *Statements) doubt(dir string) { s.parts.add(dir) }

// marks are parts of statements: every statement of a place holds one, whichever other
// characters a body escapes.
var marks = [][]byte{[]byte("irectory"), []byte("cwd>"), []byte("pwd"), []byte("bsolute path: ")}

// mayStatePlace reports whether a text, given as the inside of a JSON string, may state a
// place: most prompts are long and state none. escapes is true if the text may hold escapes
// such as \u0064.
func mayStatePlace(raw []byte, escapes bool) bool {
	if escapes && bytes.Contains(raw, []byte(`\u00`)) {
		return true // an escape may spell a letter
	}
	return marked(raw)
}

func marked(text []byte) bool {
	return slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(text, mark) })
}

// CleanDirectory removes quotes and cleans a path; it returns "" if the path is not
// absolute.
func CleanDirectory(s string) string {
	s = strings.Trim(strings.TrimSpace(s), "`'\"")
	absolute := strings.HasPrefix(s, "/") || len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
	if !absolute || len(s) > maxPath || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return ""
	}
	return filepath.Clean(s)
}

// directoryTag matches the name of an element with the directory.
const directoryTag = `(?:cwd|(?:current_|current-)?working[_-]?[dD]irectory)`

var (
	// stating matches a line with a statement of the working directory, of any client.
	stating = regexp.MustCompile("^\\s*(?:[-*]|\\d+\\.)?\\s*(?:\\*\\*)?(?:The |Primary )?(?:[Cc]urrent )?[Ww]ork(?:ing|space) [Dd]irectory(?::(?:\\*\\*)? (.+)| is `([^`]+)`.*)$" +
		`|^\s*<` + directoryTag + `>(.+)</` + directoryTag + `>\s*$` +
		`|^I'm currently working in the directory: (.+)$` +
		`|^# Current (?:Workspace|Working) Directory \((.+)\) Files$` +
		`|^Absolute path: (.+)$`) // Mistral Vibe, before the list of files

	// announcing matches a line after which the directory has a line of its own: the tag of an
	// element, a label, or a command.
	announcing = regexp.MustCompile(`^\s*<` + directoryTag + `>\s*$` +
		`|^\s*(?:[-*#]+ ?)?(?:\*\*)?(?:[Cc]urrent )?[Ww]ork(?:ing|space) [Dd]irectory:?(?:\*\*)?:?\s*$` +
		`|^\s*[%$>] pwd\s*$`) // Droid

	repoLine = regexp.MustCompile(`^\s*\* Git repository: ([\w.-]+/[\w.-]+)\s*$`) // Copilot CLI
)

// fileMarks begin the lines after which a prompt quotes files of the repository. The
// client's own statements come before them.
var fileMarks = inBytes(gather(func(cl *client) []string { return cl.Prompts }))

// readPrompt adds the statements of a system prompt. It passes the number of bytes that it
// has read to after, and ends when after reports that no time is left.
func (s *Statements) readPrompt(text []byte, after func(bytes int) bool) {
	var lines directories
	found, near := &s.prompts, 0 // near: the number of further lines of Copilot's that may name the repository
	for line := range bytes.Lines(text) {
		if !after(len(line)) {
			return
		}
		line = bytes.TrimRight(line, "\r\n")
		begin := bytes.TrimSpace(line)
		if len(begin) == 0 {
			continue
		}
		if slices.ContainsFunc(fileMarks, func(mark []byte) bool { return bytes.HasPrefix(begin, mark) }) {
			found = &s.quoted
		}
		if dir := lines.in(line); dir != "" {
			found.dir.add(dir)
			if near = 0; begin[0] == '*' {
				near = 2
			}
			continue
		}
		if near > 0 {
			near--
			if m := repoLine.FindSubmatch(line); m != nil {
				found.repo.add(string(m[1]))
			}
		}
	}
}

// directories finds directories in the lines of a text. The zero value is ready.
type directories struct{ announced bool }

// in returns the directory that the next line states, or "".
func (d *directories) in(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if len(line) > maxPath+100 {
		d.announced = false
		return ""
	}
	if d.announced && len(bytes.TrimSpace(line)) > 0 {
		d.announced = false
		if dir := CleanDirectory(string(line)); dir != "" {
			return dir
		}
	}
	if !marked(line) { // most lines hold no mark
		return ""
	}
	d.announced = announcing.Match(line)
	for _, m := range stating.FindAllSubmatch(line, 1) {
		for _, dir := range m[1:] {
			if len(dir) > 0 {
				return CleanDirectory(string(dir))
			}
		}
	}
	return ""
}
