package dialect

import (
	"bytes"
	"slices"
)

// ThinkingBeta is the beta that a request must ask for which has
// Conversation.DropThinking's insert in it.
const ThinkingBeta = "thinking-binding-controls-2026-08-01"

// dropBound makes the API leave out thoughts that are bound to what a
// conversation began with before, in place of refusing the request.
const dropBound = `"block_binding":{"prefix_mismatch_behavior":"drop_block"}`

// DropThinking adds, to the inserts of a conversation of Anthropic's that has
// lost a block, what lets thoughts be dropped that were bound to it
// (platform.claude.com, "Preserved thinking"). It reports whether there was
// anything to add.
func (c *Conversation) DropThinking(inserts []Insert) ([]Insert, bool) {
	if c.thinking == 0 {
		return inserts, false
	}
	rest := c.body[c.thinking:]
	end := bytes.IndexByte(rest, '}')
	if end < 0 || bytes.Contains(rest[:end], []byte(`"block_binding"`)) { // the client has said what it wants
		return inserts, false
	}
	text := dropBound
	if len(bytes.TrimSpace(rest[:end])) > 0 {
		text += ","
	}
	out := append(slices.Clone(inserts), Insert{At: c.thinking, Text: []byte(text)})
	slices.SortStableFunc(out, func(a, b Insert) int { return a.At - b.At })
	return out, true
}
