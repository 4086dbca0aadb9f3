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
	thinking := dialect.Document(body).Get("thinking")
	if !thinking.IsObject() || thinking.Get("block_binding").Exists() {
		return dialect.Insert{}, false
	}
	text := `"block_binding":` + dropBound
	if len(thinking.Map()) > 0 {
		text += ","
	}
	return dialect.Insert{At: thinking.Index + 1, Text: []byte(text)}, true
}
