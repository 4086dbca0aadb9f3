package index

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                      nil,
		"What is MY Cat's name?":                {"cat", "name"},
		"a b 7 é 1st":                           {"7", "é", "1st"},
		"go_to foo-bar/baz.go":                  {"go", "foo", "bar", "baz"},
		"Straße ÉCOLE école e\u0301":            {"straße", "école", "e\u0301"},
		"नमस्ते 한국어":                            {"नमस्ते", "한국어"},
		"torn \xff\xfe bytes":                   {"torn", "bytes"},
		strings.Repeat("x", 65) + " short":      {"short"},
		strings.Repeat("y", 64):                 {strings.Repeat("y", 64)},
		"one two one three four five six seven": {"one", "two", "three", "four", "five"},
	} {
		if diff := cmp.Diff(want, Words(text, 5)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
