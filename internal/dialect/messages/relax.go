package messages

import (
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
	thinking := dialect.Document(body[at.Start:at.End])
	if !thinking.IsObject() || thinking.Get("block_binding").Exists() {
		return dialect.Insert{}, false
	}
	text := `"block_binding":` + dropBound
	if len(thinking.Map()) > 0 {
		text += ","
	}
	return dialect.Insert{At: at.Start + 1, Text: []byte(text)}, true
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
