package messages

import (
	"bytes"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// dropBound makes the API drop thoughts that are bound to an earlier beginning of the
// conversation; otherwise it refuses the request.
const dropBound = `{"prefix_mismatch_behavior":"drop_block"}`

// dropThinking sets thinking.block_binding, so that the API drops thoughts bound to a block
// that the conversation has lost (platform.claude.com, "Preserved thinking"). It returns
// false if there is nothing to add: a client that sets the field itself has decided.
func dropThinking(body []byte) (dialect.Insert, bool) {
	at := objectAt(body, "thinking")
	thinking := body[at.Start:at.End]
	if len(thinking) == 0 || gjson.GetBytes(thinking, "block_binding").Exists() {
		return dialect.Insert{}, false
	}
	set, err := sjson.SetRawBytes(thinking, "block_binding", []byte(dropBound))
	if err != nil {
		return dialect.Insert{}, false
	}
	added, ok := addition(thinking, set)
	added.At += at.Start
	return added, ok
}

// objectAt returns the span of the last member with this name and an object as its value.
// The API takes the last one.
func objectAt(body []byte, name string) (at dialect.Span) {
	s := dialect.NewScanner(body)
	s.Object(func(key []byte) bool {
		isObject := s.Peek() == '{'
		v, ok := s.Value()
		if isObject && string(key) == name {
			at = v
		}
		return ok
	})
	return at
}

// addition returns the one piece that turns before into after; ok is false if they differ
// by more than that.
func addition(before, after []byte) (added dialect.Insert, ok bool) {
	at := 0
	for at < len(before) && at < len(after) && before[at] == after[at] {
		at++
	}
	if len(after) <= len(before) || !bytes.HasSuffix(after, before[at:]) {
		return dialect.Insert{}, false
	}
	return dialect.Insert{At: at, Text: after[at : at+len(after)-len(before)]}, true
}
