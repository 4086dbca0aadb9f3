package dialect_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
)

// ofSection returns the cases of all dialects with a section.
func ofSection(t testing.TB, section string) (cases []testCase) {
	t.Helper()
	for _, d := range registry.All {
		for _, list := range fixtures(t, d) {
			for _, tc := range list {
				if tc.section == section {
					cases = append(cases, tc)
				}
			}
		}
	}
	return cases
}

// FuzzRequests checks that an accepted body is JSON, has a fingerprint for each message,
// and does not change otherwise when it gets a block.
func FuzzRequests(f *testing.F) {
	for _, tc := range ofSection(f, "request") {
		f.Add(tc.body())
	}
	for _, content := range []string{`[]`, `[ ]`, `null`, `""`, `[{"type":"image_url","image_url":{"url":"x"}}]`, `[5]`, `[[]]`} {
		f.Add([]byte(`{"messages":[{"role":"user","content":"a"},{"role":"user","content":` + content + `}]}`))
		f.Add([]byte(`{"input":[{"role":"user","content":"a"},{"role":"user","content":` + content + `},{"type":"compaction_trigger"}]}`))
	}
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"\ud83d\ude00"}]}],"a":[1,-2.5e+3,{"b":null}]}`))
	f.Add([]byte("{\"messages\":[{\"role\":\"user\",\"content\":\"\x00\"}]}"))
	f.Add([]byte(`{"messages":[{"role":"user","content":"\\"}],"x":""}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range registry.All {
			var c dialect.Conversation
			if !d.Parse(body, &c) {
				continue
			}
			if !json.Valid(body) {
				t.Fatalf("understood what is not JSON: %q", body)
			}
			if chain := c.Chain(dialect.Root("", "p"), nil); len(chain) != len(c.Messages) {
				t.Fatal("a message has no fingerprint")
			}
			checkSplices(t, d, body)
			if relax := d.Info().Relax; relax != nil {
				if in, ok := relax.Insert(body); ok && !json.Valid(bytes.Join(dialect.Splice(nil, body, []dialect.Insert{in}), nil)) {
					t.Errorf("not valid when it is relaxed: %s", body)
				}
			}
			if c.Last >= 0 {
				c.Place("Codex")
				c.AnswerTo(c.Last)
			}
		}
	})
}

// TestChunkingDoesNotMatter checks that a stream results in the same answer with any pieces
// and any line ends.
func TestChunkingDoesNotMatter(t *testing.T) {
	cases := ofSection(t, "events")
	rapid.Check(t, func(t *rapid.T) {
		tc := rapid.SampledFrom(cases).Draw(t, "case")
		want := readEvents(tc.d, []byte(tc.text), len(tc.text)+1)
		rest := []byte(strings.ReplaceAll(tc.text, "\n", rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "line end")))
		r := tc.d.NewReader("")
		events := dialect.EventReader{Emit: r.Event}
		for len(rest) > 0 {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "n")
			events.Feed(slices.Clone(rest[:n]))
			rest = rest[n:]
		}
		events.End()
		if got := r.Answer(); !sameAnswers(got, want) {
			t.Fatalf("%+v with calls %q, want %+v with %q", got, got.Calls.Texts(), want, want.Calls.Texts())
		}
	})
}

// sameAnswers reports whether two answers are equal, with the texts of their calls.
func sameAnswers(a, b dialect.Answer) bool {
	same := slices.Equal(a.Calls.Texts(), b.Calls.Texts())
	a.Calls, b.Calls = nil, nil
	return same && reflect.DeepEqual(a, b)
}

// FuzzAnswers checks that readers accept any bytes and return the same answer for any
// pieces.
func FuzzAnswers(f *testing.F) {
	for _, section := range []string{"events", "body"} {
		for _, tc := range ofSection(f, section) {
			f.Add([]byte(tc.text), 7)
		}
	}
	f.Add([]byte("data:\r\rdata: {\"choices\":[{}]}\r\n\r\nevent: x\n:"), 1)
	f.Fuzz(func(t *testing.T, stream []byte, size int) {
		size = 1 + (size&0xffff)%64
		for _, d := range registry.All {
			want := readEvents(d, stream, len(stream)+1)
			if got := readEvents(d, stream, size); !sameAnswers(got, want) {
				t.Errorf("in pieces of %d: %+v with calls %q, whole: %+v with %q", size, got, got.Calls.Texts(), want, want.Calls.Texts())
			}
			r := d.NewReader("")
			r.Body(stream)
			if a := r.Answer(); len(a.Text) > dialect.MaxAnswer {
				t.Errorf("%d bytes are kept", len(a.Text))
			}
		}
	})
}
