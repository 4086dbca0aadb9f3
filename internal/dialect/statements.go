package dialect

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
)

// Place says where a client works, as the client states it.
type Place struct {
	Directory string // an absolute path; empty when it does not say
	Repo      string // owner/name on GitHub, where it names that

	// Unclear says that several places are named, one perhaps by a file of the
	// repository, and that it cannot be known which of them the client wrote.
	Unclear bool
}

// maxPath bounds a path, in bytes.
const maxPath = 4096

// Statements gather what prompts and the items of clients state about the place. The
// zero value is ready.
type Statements struct {
	prompts stated // in prompts, before they quote files
	quoted  stated // in prompts, after that
	newest  string // by the newest item of the client
	items   claim  // by all its items
	item    bool   // it has written one
	parts   claim  // in texts that may be items, or files that a person attached
}

// merge adds what another prompt states.
func (s *Statements) merge(q Statements) {
	s.prompts.merge(q.prompts)
	s.quoted.merge(q.quoted)
}

type stated struct{ dir, repo claim }

func (s *stated) merge(q stated) {
	s.dir.merge(q.dir)
	s.repo.merge(q.repo)
}

// place decides where the client works. All statements have to agree, because it
// cannot be known who wrote which. What a prompt quotes from files does not count,
// but a place that only such files name is unclear. moves says that the client
// changes its directory and states each in an item: then only the newest item counts.
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

// claim is a value that is stated once or several times.
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

// fits reports whether nothing but v is stated.
func (c *claim) fits(v string) bool { return !c.several && (c.value == "" || c.value == v) }

// state notes the directory of a client's item; empty: it cannot be known.
func (s *Statements) state(dir string) {
	s.newest, s.item = dir, true
	s.items.add(dir)
	s.items.several = s.items.several || dir == ""
}

// doubt notes the directory of what may be an item, or a file that a person attached.
func (s *Statements) doubt(dir string) { s.parts.add(dir) }

// Size returns about how many bytes the statements take.
func (s *Statements) Size() (n int) {
	for _, c := range []*claim{&s.prompts.dir, &s.prompts.repo, &s.quoted.dir, &s.quoted.repo, &s.items, &s.parts} {
		n += len(c.value)
	}
	return n + len(s.newest)
}

// marks: every statement of a place holds one, however a body escapes the rest.
var marks = [][]byte{[]byte("irectory"), []byte("cwd>"), []byte("bsolute path: ")}

// mayStatePlace reports whether a text, given as the inside of a JSON string, may
// state a place: most prompts are long and state none. escapes says that characters
// may be written as \u0064.
func mayStatePlace(raw []byte, escapes bool) bool {
	if escapes && bytes.Contains(raw, []byte(`\u00`)) {
		return true // which may spell a letter
	}
	return marked(raw)
}

func marked(text []byte) bool {
	for _, mark := range marks {
		if bytes.Contains(text, mark) {
			return true
		}
	}
	return false
}

// CleanDirectory removes quotes and cleans a path; "" when it is not absolute.
func CleanDirectory(s string) string {
	s = strings.Trim(strings.TrimSpace(s), "`'\"")
	absolute := strings.HasPrefix(s, "/") || len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
	if !absolute || len(s) > maxPath || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return ""
	}
	return filepath.Clean(s)
}

var (
	// stating matches a line that states a working directory, of any client.
	stating = regexp.MustCompile("^\\s*(?:[-*]|\\d+\\.)?\\s*(?:\\*\\*)?(?:The |Primary )?(?:[Cc]urrent )?[Ww]ork(?:ing|space) [Dd]irectory(?::(?:\\*\\*)? (.+)| is `([^`]+)`.*)$" +
		`|^\s*<cwd>(.+)</cwd>\s*$` +
		`|^I'm currently working in the directory: (.+)$` +
		`|^# Current (?:Workspace|Working) Directory \((.+)\) Files$` +
		`|^Absolute path: (.+)$`) // Mistral Vibe, before the list of files
	repoLine = regexp.MustCompile(`^\s*\* Git repository: ([\w.-]+/[\w.-]+)\s*$`) // Copilot CLI
)

// fileMarks begin the lines after which a prompt quotes files of the repository: the
// client states nothing itself after them.
var fileMarks = [][]byte{
	[]byte("Instructions from: "),        // opencode, Kilo
	[]byte(`<context name="userRules">`), // Continue
	[]byte("## Workspace "),              // Cline
	[]byte("<custom_instruction"),        // Copilot
	[]byte("--- Context from: "),         // Qwen Code, Gemini CLI
	[]byte("USER'S CUSTOM INSTRUCTIONS"), // Roo, older Cline
}

// readPrompt adds what a system prompt states. It tells after how much it has read,
// and ends when after reports that no time is left.
func (s *Statements) readPrompt(text []byte, after func(bytes int) bool) {
	found, near := &s.prompts, 0 // near: how many more lines of Copilot's may name the repository
	for line := range bytes.Lines(text) {
		if !after(len(line)) {
			return
		}
		line = bytes.TrimRight(line, "\r\n")
		begin := bytes.TrimSpace(line)
		if len(begin) == 0 {
			continue
		}
		for _, mark := range fileMarks {
			if bytes.HasPrefix(begin, mark) {
				found = &s.quoted
			}
		}
		if dir := directoryIn(line); dir != "" {
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

// directoryIn returns the directory that a line states, or "".
func directoryIn(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if len(line) > maxPath+100 || !marked(line) { // most lines need no closer look
		return ""
	}
	for _, m := range stating.FindAllSubmatch(line, 1) {
		for _, dir := range m[1:] {
			if len(dir) > 0 {
				return CleanDirectory(string(dir))
			}
		}
	}
	return ""
}
