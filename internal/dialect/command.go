package dialect

import (
	"bytes"
	"regexp"
)

// Claude Code writes a command of the person as elements, and after them the file of that
// command, as a part of its own. After a command that it carries out itself it writes the
// output.
const (
	commandName   = "command-name"
	commandArgs   = "command-args"
	commandText   = "command-message"
	commandBegins = "<command-"
	outputBegins  = "<local-command-"
)

// commandIn returns the index of the part that is a command with a file after it, or -1.
func commandIn(parts [][]byte) int {
	for n, text := range parts {
		text = trim(text)
		if !begins(text, commandBegins) || elementIn(text, commandName) == nil {
			continue
		}
		for _, tag := range []string{commandName, commandArgs, commandText} {
			text = trim(withoutElement(text, tag))
		}
		for _, next := range parts[n+1:] {
			if text = trim(text); len(text) == 0 {
				text = trim(next)
			}
		}
		if len(text) > 0 && !begins(text, outputBegins) {
			return n
		}
	}
	return -1
}

// commandWords returns a command as the person typed it.
func commandWords(text []byte) []byte {
	name := bytes.TrimPrefix(elementIn(text, commandName), []byte("/"))
	return trim(bytes.Join([][]byte{append([]byte("/"), name...), elementIn(text, commandArgs)}, []byte(" ")))
}

// elementIn returns the content of the first element with a name, or nil.
func elementIn(text []byte, tag string) []byte {
	_, text, _ = bytes.Cut(text, []byte("<"+tag+">"))
	inner, _, found := bytes.Cut(text, []byte("</"+tag+">"))
	if !found {
		return nil
	}
	return trim(inner)
}

// builtIns are the commands for which clients send a prompt of their own. Forks and releases change
// its words, not its subject.
var builtIns = []struct {
	command string
	prompt  *regexp.Regexp
}{
	{"/init", regexp.MustCompile("(?i)^[^\n]{0,200}(?:analy[sz]e (?:this|the) [^\n]{0,40}(?:generate|create) [^\n]{0,40}\\.md\\b|(?:generate a file named|create or update) `?AGENTS\\.md)")},
	{"/review", regexp.MustCompile("^`[^`\n]{0,200}`\n+You are reviewing ")},
}

// minBuiltIn is the least length of such a prompt, in bytes: a person writes less.
const minBuiltIn = 500

// builtIn returns the command whose prompt a text is, or nil.
func builtIn(text []byte) []byte {
	if !mayBeBuiltIn(text) {
		return nil
	}
	for _, b := range builtIns {
		if b.prompt.Match(text) {
			return []byte(b.command)
		}
	}
	return nil
}

// mayBeBuiltIn reports whether a text may be such a prompt.
func mayBeBuiltIn(text []byte) bool {
	return len(text) >= minBuiltIn && (text[0] == '`' || bytes.Contains(text[:minBuiltIn], []byte(".md")))
}
