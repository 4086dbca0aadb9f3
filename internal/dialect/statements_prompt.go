package dialect

import (
	"bytes"
	"regexp"
)

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
