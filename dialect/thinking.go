package dialect

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// ThinkingBeta is the beta that a request must ask for which has
// Conversation.DropThinking's insert in it.
const ThinkingBeta = "thinking-binding-controls-2026-08-01"

// dropBound makes the API drop thoughts that are bound to an earlier beginning
// of the conversation, instead of refusing the request.
const dropBound = `{"prefix_mismatch_behavior":"drop_block"}`

// DropThinking adds thinking.block_binding to the inserts of a conversation of
// Anthropic's that has lost a block, so that thoughts bound to that block are
// dropped (platform.claude.com, "Preserved thinking"). It reports whether it
// added anything: a client that sets the field itself has decided.
func (c *Conversation) DropThinking(inserts []Insert) ([]Insert, bool) {
	thinking := c.body[c.thinking.start:c.thinking.end]
	if len(thinking) == 0 || gjson.GetBytes(thinking, "block_binding").Exists() {
		return inserts, false
	}
	set, err := sjson.SetRawBytes(thinking, "block_binding", []byte(dropBound))
	if err != nil {
		return inserts, false
	}
	added, ok := addition(thinking, set)
	if !ok {
		return inserts, false
	}
	added.At += c.thinking.start
	out := append(slices.Clone(inserts), added)
	slices.SortStableFunc(out, func(a, b Insert) int { return a.At - b.At })
	return out, true
}

// addition is the one piece by which after is longer than before; ok is false
// where they differ in more than that.
func addition(before, after []byte) (added Insert, ok bool) {
	at := 0
	for at < len(before) && at < len(after) && before[at] == after[at] {
		at++
	}
	if len(after) <= len(before) || !bytes.HasSuffix(after, before[at:]) {
		return Insert{}, false
	}
	return Insert{At: at, Text: after[at : at+len(after)-len(before)]}, true
}
