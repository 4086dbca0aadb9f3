package dialect

import (
	"bytes"
	"slices"
)

// item describes a text that a client adds to a user message to state its directory. No
// other author writes between its tag and the end of that tag; quotations follow until.
type item struct {
	clients []string // by their names in programs
	start   string
	tag     string // it ends with the end of this element; if empty, with the message's text
	until   string // the beginning of the list of files
	where   position
	named   bool // other clients write it too; their prompts name the tag
}

// position is the position of a text in a conversation.
type position struct {
	Opening bool // before the first answer
	Last    bool // the last of several parts of its message
	Only    bool // its message holds no words of a person
}

// items are the items of the known clients. Clients quote the files of a repository in
// elements that begin differently.
var items = []item{
	{clients: []string{"Codex"}, start: "<environment_context>", tag: "environment_context", where: position{Only: true}},
	{clients: []string{"Kilo", "Roo"}, start: "<environment_details>", tag: "environment_details", where: position{Last: true}, named: true},
	{clients: []string{"Claude Code"}, start: "<system-reminder>\n# Environment\nYou have been invoked in the following environment:", tag: "system-reminder", where: position{Opening: true}},
	{clients: []string{"Droid"}, start: "<system-reminder>\n\nUser system info (", tag: "system-reminder", until: "\n% ls", where: position{Opening: true}},
	{clients: []string{"Droid"}, start: "<system-reminder>\nUser system info (", tag: "system-reminder", until: "\n% ls", where: position{Opening: true}},
	{clients: []string{GeminiCLI}, start: "This is the Gemini CLI. We are setting up the context", until: "\nHere is the folder structure", where: position{Opening: true, Only: true}},
	{clients: []string{"Qwen Code"}, start: "<system-reminder>\nThis is the Qwen Code. We are setting up the context", tag: "system-reminder", until: "\nHere is the folder structure", where: position{Opening: true}},
	{clients: []string{"Qwen Code"}, start: "This is the Qwen Code. We are setting up the context", until: "\nHere is the folder structure", where: position{Opening: true, Only: true}},
}

// itemStatement is a client's own statement in a user message.
type itemStatement struct {
	Directory string // empty if unclear
	Tag       string // clients that write the item name this tag in their prompts; empty if none does
	clients   []string
}

// of reports whether this client states its directory in this form.
func (it *itemStatement) of(client string) bool { return slices.Contains(it.clients, client) }

// readItem reads a text of a user message. ok is false if no client states its directory
// with a text that begins like this one, in this position.
func readItem(text []byte, at position) (it itemStatement, ok bool) {
	for i := range items {
		f := &items[i]
		if !at.fits(f.where) || !bytes.HasPrefix(text, []byte(f.start)) {
			continue
		}
		it.clients = f.clients
		if f.named {
			it.Tag = f.tag
		}
		if f.tag != "" && !element(text, f.tag) {
			return it, true // a quoted file may hold the end
		}
		if f.until != "" {
			text, _, _ = bytes.Cut(text, []byte(f.until))
		}
		var found claim
		var lines directories
		for line := range bytes.Lines(text) {
			if dir := lines.in(line); dir != "" {
				found.add(dir)
			}
		}
		if found.several {
			return it, true
		}
		it.Directory = found.value
		return it, found.value != ""
	}
	return it, false
}

func (p position) fits(want position) bool {
	return (p.Opening || !want.Opening) && (p.Last || !want.Last) && (p.Only || !want.Only)
}

// element reports whether a text is exactly one element.
func element(text []byte, tag string) bool {
	open, shut := []byte("<"+tag+">"), []byte("</"+tag+">")
	return bytes.HasPrefix(text, open) && bytes.HasSuffix(text, shut) && bytes.Count(text, open) == 1 && bytes.Count(text, shut) == 1
}
