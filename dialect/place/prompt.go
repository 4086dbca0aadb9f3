package place

import (
	"bytes"
	"regexp"
)

var (
	// looseLine is a line of a prompt that names a directory, in any client.
	looseLine = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)?\s*(?:Primary )?(?:Current )?[Ww]ork(?:ing|space) [Dd]irectory: (.+)$`)
	repoLine  = regexp.MustCompile(`^\s*\* Git repository: ([\w.-]+/[\w.-]+)\s*$`) // Copilot CLI
)

// envLines bounds the lines of an <env> block.
const envLines = 16

// clientForm is how clients state their directory in a system prompt: a line of
// their own after one that they always write before it.
type clientForm struct {
	clients string
	before  string // how the line before begins; in an <env> block: any
	line    *regexp.Regexp
	env     bool // it stands in an <env> block
	end     bool // it ends the prompt
	repo    bool // the repository may follow
}

var forms = []clientForm{
	{clients: "Claude Code to 2.1.50, opencode, Continue, Crush", env: true, line: regexp.MustCompile(`^\s*Working directory: (.+)$`)},
	{clients: "Cline", env: true, line: regexp.MustCompile(`^\s*\d+\. Working Directory: (.+)$`)},
	{clients: "Claude Code", before: "You have been invoked in the following environment:", line: regexp.MustCompile(`^ - Primary working directory: (.+)$`)},
	{clients: "Copilot CLI", before: "You are working in the following environment.", line: regexp.MustCompile(`^\* Current working directory: (.+)$`), repo: true},
	{clients: "Roo, older Cline and Kilo", before: "Home Directory: ", line: regexp.MustCompile(`^Current (?:Workspace|Working) Directory: (.+)$`)},
	{clients: "pi", before: "Current date", end: true, line: regexp.MustCompile(`^Current working directory: (.+)$`)},
}

// fileMarks begin the lines behind which a prompt quotes files of the
// repository: none but pi says anything for itself behind them.
var fileMarks = []string{
	piFiles,
	"Instructions from: ",        // opencode, Kilo
	`<context name="userRules">`, // Continue
	"## Workspace ",              // Cline
	"<custom_instruction",        // Copilot
	"--- Context from: ",         // Qwen Code, Gemini CLI
	"USER'S CUSTOM INSTRUCTIONS", // Roo, older Cline
}

// piFiles is pi's: its own statement ends the prompt.
const piFiles = "# Project Context"

// ReadPrompt adds what a system prompt states. It ends where after, which gets how
// much it has read, says that there is no time for more.
func (s *Statements) ReadPrompt(text []byte, after func(bytes int) bool) {
	r := promptReader{s: s}
	for line := range bytes.Lines(text) {
		if !after(len(line)) {
			return
		}
		r.line(bytes.TrimRight(line, "\r\n"))
	}
	if r.last != "" && (r.mark == "" || r.mark == piFiles) {
		// What else is in a client's form may be this client's.
		s.own.dir.add(r.last)
		s.own.dir.several = s.own.dir.several || !r.quoted.fits(r.last)
	}
}

// promptReader reads a system prompt line by line.
type promptReader struct {
	s    *Statements
	prev []byte
	mark string // behind which the prompt quotes files
	env  int    // lines of an <env> block, the current one included; zero: outside
	last string // what the line that ends the prompt so far states

	near   *claim // where a repository goes that is named within so many lines
	within int

	// quoted is what stands in a client's form where it does not count: behind
	// a mark, or as at the end, since a directory's name may hold line feeds.
	quoted claim
}

func (r *promptReader) line(line []byte) {
	text := bytes.TrimSpace(line)
	if len(text) == 0 {
		return
	}
	r.last = ""
	for i := 0; r.mark == "" && i < len(fileMarks); i++ {
		if bytes.HasPrefix(text, []byte(fileMarks[i])) {
			r.mark = fileMarks[i]
		}
	}
	switch {
	case string(text) == "<env>":
		r.env = 1
	case r.env > 0:
		if r.env++; string(text) == "</env>" || r.env > envLines {
			r.env = 0
		}
	}
	dir := ""
	if bytes.Contains(text, []byte("irectory: ")) { // most lines need no closer look
		dir = directoryIn(looseLine, line)
	}
	if dir != "" {
		r.directory(line, dir)
	} else if r.within > 0 {
		r.within--
		if m := repoLine.FindSubmatch(line); m != nil {
			r.near.add(string(m[1]))
		}
	}
	r.prev = text
}

// directory adds a line that names one.
func (r *promptReader) directory(line []byte, dir string) {
	form := r.form(line)
	r.within = 0
	switch {
	case form != nil && !form.end && r.mark == "":
		r.s.own.dir.add(dir)
		if form.repo {
			r.near, r.within = &r.s.own.repo, 2
		}
		return
	case form != nil && form.end:
		r.last = dir
	}
	if form != nil {
		r.quoted.add(dir)
	}
	if r.mark != "" {
		r.s.quoted.add(dir)
		return
	}
	r.s.loose.dir.add(dir)
	r.near, r.within = &r.s.loose.repo, 2
}

// form is a client's that the line has, where it stands.
func (r *promptReader) form(line []byte) *clientForm {
	for i := range forms {
		f := &forms[i]
		if f.env == (r.env > 0) && bytes.HasPrefix(r.prev, []byte(f.before)) && f.line.Match(line) {
			return f
		}
	}
	return nil
}
