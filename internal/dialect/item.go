package dialect

import (
	"bytes"
	"slices"
)

// item is how a client begins a text of its own among those of a user message,
// and states its directory in it. Nobody else writes in that text: it is whole
// from its tag to the end of that tag, and what it quotes stands behind until.
type item struct {
	clients []string // as package client names them
	start   string
	tag     string // it ends with the end of this element; empty: with the message's text
	until   string // how the list of files begins
	where   Position
	named   bool // other clients write it too, whose prompt names the tag
}

// Position is where among the texts of a conversation one stands.
type Position struct {
	Opening bool // in the first user message
	Last    bool // the last of its message, behind other parts of it
	Only    bool // its message holds nothing of a person
}

// The files of a repository, which a client quotes too, stand in elements that
// begin with something else.
var items = []item{
	{clients: []string{"Codex"}, start: "<environment_context>", tag: "environment_context", where: Position{Only: true}},
	{clients: []string{"Kilo", "Roo"}, start: "<environment_details>", tag: "environment_details", where: Position{Last: true}, named: true},
	{clients: []string{"Claude Code"}, start: "<system-reminder>\n# Environment\nYou have been invoked in the following environment:", tag: "system-reminder", where: Position{Opening: true}},
	{clients: []string{"Qwen Code"}, start: "<system-reminder>\nThis is the Qwen Code. We are setting up the context", tag: "system-reminder", until: "\nHere is the folder structure", where: Position{Opening: true}},
	{clients: []string{"Qwen Code"}, start: "This is the Qwen Code. We are setting up the context", until: "\nHere is the folder structure", where: Position{Opening: true, Only: true}},
}

// Item is what a text of a user message states, if it is a client's own.
type Item struct {
	Directory string // empty: it cannot be known
	Tag       string // the prompt of whose client names it; empty: no prompt does
	clients   []string
}

// Of reports whether it is how this client states its directory.
func (it *Item) Of(client string) bool { return slices.Contains(it.clients, client) }

// ReadItem reads a text of a user message; ok is false where no client begins
// one so, in that position, in order to state its directory.
func ReadItem(text []byte, at Position) (it Item, ok bool) {
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
			return it, true // what a file holds may end it
		}
		if f.until != "" {
			text, _, _ = bytes.Cut(text, []byte(f.until))
		}
		var found claim
		for line := range bytes.Lines(text) {
			if dir := directoryIn(line); dir != "" {
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

func (p Position) fits(want Position) bool {
	return (p.Opening || !want.Opening) && (p.Last || !want.Last) && (p.Only || !want.Only)
}

// element reports whether a text is one element, which ends where it does.
func element(text []byte, tag string) bool {
	open, shut := []byte("<"+tag+">"), []byte("</"+tag+">")
	return bytes.HasPrefix(text, open) && bytes.HasSuffix(text, shut) && bytes.Count(text, open) == 1 && bytes.Count(text, shut) == 1
}
