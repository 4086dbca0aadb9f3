package inject

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Place is where a client says that it works.
type Place struct {
	Directory string // an absolute path; empty when it does not say
	Repo      string // owner/name on GitHub, where it names that
}

// maxPath bounds a path, in bytes.
const maxPath = 4096

// placeMarks stand in every line that placeLines look for, however a body
// spells what is around them.
var placeMarks = [][]byte{[]byte("irectory"), []byte("cwd"), []byte("Git repository: ")}

// placeLines are how clients say where they work, each on a line of its own:
// system prompts hold sample conversations too.
var (
	placeLines = []*regexp.Regexp{
		regexp.MustCompile(`^\s*(?:[-*]|\d+\.)?\s*(?:Primary )?(?:Current )?[Ww]orking [Dd]irectory: (.+)$`), // Claude Code, opencode, Copilot, Cline, Continue, pi
		regexp.MustCompile(`^\s*<cwd>(.+?)</cwd>`),                                                           // Codex
		regexp.MustCompile(`^# Current Workspace Directory \((.+?)\) Files`),                                 // Roo, Kilo
		regexp.MustCompile(`^I'm currently working in the directory: (.+)$`),                                 // Qwen Code
	}
	repoLine = regexp.MustCompile(`^\s*\* Git repository: ([\w.-]+/[\w.-]+)\s*$`) // Copilot CLI
)

// Place finds out where the client says that it works: in what it says for
// itself, never in a person's words or a tool's output. last says that the
// last word counts, for a client whose directory changes. It reads whole
// prompts: callers remember what it found.
func (c *Conversation) Place(last bool) (p Place) {
	if c.marked(&c.prompt) {
		p.read(c.joined(&c.prompt), last)
	}
	for i := range c.Messages {
		if p.Directory != "" && !last {
			break
		}
		m := &c.Messages[i]
		var text []byte
		switch {
		case !m.system && (m.Role != RoleUser || !m.cleaned) || !c.marked(m):
			continue
		case m.system:
			text = c.joined(m)
		default:
			text = harnessOnly(c.joined(m), m.clean)
		}
		p.read(text, last)
	}
	return p
}

// marked reports whether a place can stand in a message, before it is decoded:
// most prompts name none, and are long.
func (c *Conversation) marked(m *Message) bool {
	for _, s := range c.spans[m.from:m.to] {
		raw := c.body[s.start:s.end]
		if s.unicode && bytes.Contains(raw, []byte(`\u00`)) {
			return true // which may spell a letter
		}
		for _, mark := range placeMarks {
			if bytes.Contains(raw, mark) {
				return true
			}
		}
	}
	return false
}

// harnessOnly is what a client put into a user message: of one that a person
// wrote too, what stands before their words and, as Roo and Kilo have it,
// behind them.
func harnessOnly(text, person []byte) []byte {
	if len(person) == 0 {
		return text
	}
	before, after, _ := bytes.Cut(text, person)
	return slices.Concat(before, []byte{'\n'}, after)
}

func (p *Place) read(text []byte, last bool) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > maxPath+100 {
			continue
		}
		if m := repoLine.FindSubmatch(line); m != nil && (p.Repo == "" || last) {
			p.Repo = string(m[1])
		}
		for _, re := range placeLines {
			m := re.FindSubmatch(line)
			if m == nil || p.Directory != "" && !last {
				continue
			}
			if dir := cleanDirectory(string(m[1])); dir != "" {
				p.Directory = dir
			}
		}
	}
}

// cleanDirectory takes quotes off, and refuses what is no absolute path.
func cleanDirectory(s string) string {
	s = strings.Trim(strings.TrimSpace(s), "`'\"")
	absolute := strings.HasPrefix(s, "/") || len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
	if !absolute || len(s) > maxPath || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return ""
	}
	return filepath.Clean(s)
}
