package dialect

import (
	"bytes"
	"slices"
)

// item describes a text that a client adds to a user message to state its directory. No
// other author writes between its tag and the end of that tag; quotations follow until.
type item struct {
	Clients []string // by their names in programs
	Start   string
	Tag     string // it ends with the end of this element; if empty, with the message's text
	Until   string // the beginning of the list of files
	Where   position
	Named   bool // other clients write it too; their prompts name the tag
}

// position is the position of a text in a conversation.
type position struct {
	Opening bool // before the first answer
	Last    bool // the last of several parts of its message
	Only    bool // its message holds no words of a person
}

// items are the items of the known clients. Clients quote the files of a repository in
// elements that begin differently.
var items = gather(func(cl *client) []item { return cl.Items })

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
		if !at.fits(f.Where) || !bytes.HasPrefix(text, []byte(f.Start)) {
			continue
		}
		it.clients = f.Clients
		if f.Named {
			it.Tag = f.Tag
		}
		if f.Tag != "" && !element(text, f.Tag) {
			return it, true // a quoted file may hold the end
		}
		if f.Until != "" {
			text, _, _ = bytes.Cut(text, []byte(f.Until))
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
