package dialect

import (
	"bytes"
	"regexp"
)

var (
	codexLine = regexp.MustCompile(`^\s*<cwd>(.+?)</cwd>`)
	qwenLine  = regexp.MustCompile(`^I'm currently working in the directory: (.+)$`)
	// Kilo CLI's, and that of Roo and of older Cline and Kilo.
	detailsLine = regexp.MustCompile(`^(?:Working directory: |# Current (?:Workspace|Working) Directory \()(.+?)(?:\) Files)?$`)
)

// item adds the directory that a client states in user message i, where it
// writes one itself.
func (c *Conversation) item(s *statements, i int, codex bool) {
	m := &c.Messages[i]
	n := m.to - m.from
	switch {
	case n == 0:
	case codex:
		for part := range n {
			if dir, ok := codexPlace(c.part(m, part)); ok && !m.Person {
				s.item, s.items = dir, true
			}
		}
	case c.isQwenSetup(i):
		s.item, s.items = qwenPlace(c.part(m, 0)), true
	case n > 1 || m.Results:
		// The client's own part comes last, after the person's and the files'.
		text, ok := element(c.part(m, n-1), "environment_details")
		if !ok {
			return
		}
		dir := detailsPlace(text)
		switch {
		case dir.value == "":
		case !c.hasDetails():
			s.parts.add(dir.value)
		case dir.several:
			s.item, s.items = "", true
		default:
			s.item, s.items = dir.value, true
		}
	}
}

// part is the text of a part of a message, trimmed.
func (c *Conversation) part(m *Message, n int) []byte {
	s := c.spans[m.from+n]
	return trim(appendText(nil, c.body[s.Start:s.End]))
}

// element is what stands in an element that is the whole text.
func element(text []byte, tag string) (inner []byte, ok bool) {
	inner, open := bytes.CutPrefix(text, []byte("<"+tag+">"))
	inner, shut := bytes.CutSuffix(inner, []byte("</"+tag+">"))
	return inner, open && shut
}

// codexPlace reads the item in which Codex tells its environment.
func codexPlace(text []byte) (dir string, ok bool) {
	text, ok = element(text, "environment_context")
	if !ok {
		return "", false
	}
	if n := bytes.Count(text, []byte("<cwd>")); n != 1 {
		return "", n > 0
	}
	for line := range bytes.Lines(text) {
		if dir = directoryIn(codexLine, bytes.TrimRight(line, "\r\n")); dir != "" {
			return dir, true
		}
	}
	return "", true
}

// isQwenSetup reports whether message i is the one with which Qwen Code begins
// each conversation, and which it answers itself.
func (c *Conversation) isQwenSetup(i int) bool {
	for j := range i {
		if !c.Messages[j].System {
			return false
		}
	}
	answered := i+1 < len(c.Messages) && c.Messages[i+1].Role == RoleAssistant
	return answered && !c.Messages[i].Person &&
		bytes.HasPrefix(c.part(&c.Messages[i], 0), []byte("This is the Qwen Code. We are setting up the context"))
}

// qwenPlace reads what stands before the names of files.
func qwenPlace(text []byte) string {
	text, _, _ = bytes.Cut(text, []byte("\nHere is the folder structure"))
	var dir claim
	for line := range bytes.Lines(text) {
		if d := directoryIn(qwenLine, bytes.TrimRight(line, "\r\n")); d != "" {
			dir.add(d)
		}
	}
	if dir.several {
		return ""
	}
	return dir.value
}

// hasDetails reports whether the client is one that ends a person's messages
// with its environment: another may send a file as a part. Its prompts, which
// tell, are read once.
func (c *Conversation) hasDetails() bool {
	if c.details == nil {
		has := c.isDetailed(&c.prompt)
		for i := 0; i < len(c.Messages) && !has; i++ {
			has = c.Messages[i].System && c.isDetailed(&c.Messages[i])
		}
		c.details = &has
	}
	return *c.details
}

func (c *Conversation) isDetailed(m *Message) bool {
	for n := range m.to - m.from {
		text := c.part(m, n)
		if bytes.HasPrefix(text, []byte("You are Kilo")) || bytes.HasPrefix(text, []byte("You are Roo")) || bytes.Contains(text, []byte("environment_details")) {
			return true
		}
	}
	return false
}

// detailsPlace reads the part with which Kilo and Roo end a message.
func detailsPlace(text []byte) (dir claim) {
	for line := range bytes.Lines(text) {
		if d := directoryIn(detailsLine, bytes.TrimRight(line, "\r\n")); d != "" {
			dir.add(d)
		}
	}
	return dir
}
