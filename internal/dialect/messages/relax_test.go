package messages

import (
	"bytes"
	"testing"

	"github.com/tidwall/gjson"
)

// TestDropThinking: one field is added to the thinking of a request, and every
// other byte of it stays.
func TestDropThinking(t *testing.T) {
	for _, tc := range []struct {
		name, thinking string
		want           bool
	}{
		{"members", `{"type":"enabled","budget_tokens":1024}`, true},
		{"white space", "{ \"type\" : \"enabled\" ,\n\t\"budget_tokens\":1.024e3\r\n }", true},
		{"an object inside", `{"a":{"b":"}"},"type":"enabled"}`, true},
		{"no members", `{}`, true},
		{"no members, white space", "{ \n}", true},
		{"escapes", `{"ty\u0070e":"\ud83d\ude00\"","x":"é"}`, true},
		{"the client decides", `{"type":"enabled","block_binding":null}`, false},
		{"the client decides, spelt otherwise", `{"block\u005fbinding":{"prefix_mismatch_behavior":"error"}}`, false},
		{"the name as a value", `{"type":"block_binding"}`, true},
		{"no object", `"enabled"`, false},
		{"null", `null`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := []byte(`{"model":"m", "thinking" : ` + tc.thinking + ` ,"messages":[{"role":"user","content":"hello"}]}`)
			added, ok := dropThinking(body)
			if ok != tc.want {
				t.Fatalf("added %v, want %v", ok, tc.want)
			}
			if !ok {
				return
			}
			out := append(append(bytes.Clone(body[:added.At]), added.Text...), body[added.At:]...)
			if got := gjson.GetBytes(out, "thinking.block_binding").Raw; got != dropBound || !gjson.ValidBytes(out) {
				t.Errorf("got %s, want valid JSON with block_binding %s", out, dropBound)
			}
			if start := bytes.Index(body, []byte(tc.thinking)); added.At <= start || added.At > start+len(tc.thinking) {
				t.Errorf("added at %d, outside of the object", added.At)
			}
		})
	}
}
