package inject

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

func parse(t testing.TB, body string) (*dialect.Conversation, bool) {
	t.Helper()
	c := &dialect.Conversation{}
	ok := chat.Dialect{}.Parse([]byte(body), c)
	return c, ok
}

// inJSON is text as the inside of a JSON string.
func inJSON(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string: cannot fail
	return strings.TrimSuffix(b.String(), "\n")[1 : b.Len()-2]
}

// TestFingerprintsOutliveTheProgram: sessions are stored under them.
func TestFingerprintsOutliveTheProgram(t *testing.T) {
	root := dialect.Root("", "p")
	for _, p := range []dialect.Place{{Directory: "/a"}, {Repo: "a/b"}, {Unclear: true}} {
		unclear := ""
		if p.Unclear {
			unclear = "unclear"
		}
		want := graphiti.Digest("conversation in", string(root[:]), "w", p.Directory, p.Repo, unclear)
		if got := root.In("w", p); !bytes.Equal(got[:], want[:len(got)]) {
			t.Errorf("%+v: %x, want %x", p, got, want[:len(got)])
		}
	}
}

// history is a realistic conversation of about size bytes.
func history(size int) []byte {
	var messages []string
	para, _ := json.Marshal(strings.Repeat("The quick brown fox \"jumps\" over\nthe lazy dog, again and again.\n", 12))
	for n := 0; n < size; n += 2 * len(para) {
		messages = append(messages, `{"role":"user","content":`+string(para)+`},{"role":"assistant","content":`+string(para)+`}`)
	}
	messages = append(messages, `{"role":"user","content":"What is my cat called?"}`)
	return []byte(`{"model":"gpt","stream":true,"messages":[{"role":"system","content":"You are kind."},` + strings.Join(messages, ",") + `]}`)
}
