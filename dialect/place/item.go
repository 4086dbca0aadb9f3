package place

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

// element is what stands in an element that is the whole text.
func element(text []byte, tag string) (inner []byte, ok bool) {
	inner, open := bytes.CutPrefix(text, []byte("<"+tag+">"))
	inner, shut := bytes.CutSuffix(inner, []byte("</"+tag+">"))
	return inner, open && shut
}

// Codex reads the item in which Codex tells its environment.
func Codex(text []byte) (dir string, ok bool) {
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

// IsQwenOpening tells the text with which Qwen Code begins each conversation.
func IsQwenOpening(text []byte) bool {
	return bytes.HasPrefix(text, []byte("This is the Qwen Code. We are setting up the context"))
}

// Qwen reads what stands before the names of files.
func Qwen(text []byte) string {
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

// EndsWithDetails tells the prompts of clients that end a person's messages with
// their environment.
func EndsWithDetails(prompt []byte) bool {
	return bytes.HasPrefix(prompt, []byte("You are Kilo")) || bytes.HasPrefix(prompt, []byte("You are Roo")) || bytes.Contains(prompt, []byte("environment_details"))
}

// Details reads the part with which Kilo and Roo end a message. The directory is
// the last that it names, empty where it names none.
func Details(text []byte) (dir string, several bool) {
	text, ok := element(text, "environment_details")
	if !ok {
		return "", false
	}
	var found claim
	for line := range bytes.Lines(text) {
		if d := directoryIn(detailsLine, bytes.TrimRight(line, "\r\n")); d != "" {
			found.add(d)
		}
	}
	return found.value, found.several
}
