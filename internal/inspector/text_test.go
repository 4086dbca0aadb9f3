package inspector

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// TestControlCharactersAreVisible checks that visible replaces control characters and marks of
// the text direction by their names, and keeps characters that scripts and emoji need. In a
// text field, editable leaves the former out.
func TestControlCharactersAreVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext":        "plain\n\ttext",
		"a\u202egnp.exe":       "a⟨U+202E⟩gnp.exe",
		"\u2066x\u2069":        "⟨U+2066⟩x⟨U+2069⟩",
		"\x1b[31mred\x00":      "⟨U+001B⟩[31mred⟨U+0000⟩",
		"\u0085 \u200b \ufeff": "⟨U+0085⟩ ⟨U+200B⟩ ⟨U+FEFF⟩",
		"\U000e0041\U000e007f": "⟨U+E0041⟩⟨U+E007F⟩",
		"می\u200cخواهم":        "می\u200cخواهم",
		"👩\u200d👧 שלום Ünï 日本 नमस्ते": "👩\u200d👧 שלום Ünï 日本 नमस्ते",
		"\xff": "\ufffd",
		"\r\n": "⟨U+000D⟩\n",
	} {
		if got := string(visible([]byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := editable("a\u202eb\x1bc\n"); got != "abc\n" {
		t.Errorf("got %q", got)
	}
}

// TestLongTextsAreCut checks that a page has the beginning of a long text, and the rest
// while it has room or if no other page shows the text.
func TestLongTextsAreCut(t *testing.T) {
	v := &visit{room: roomForText}
	if s := v.said(" short ", "/more"); s != (said{Begins: "short"}) {
		t.Errorf("got %+v", s)
	}
	long := strings.Repeat("日本語 ", 2000)
	s := v.said(long, "/more")
	if s.Begins+s.Rest != strings.TrimSpace(long) || s.Chars != 7999 || len(s.Begins) > beginning {
		t.Errorf("%d characters begin, %d of %d follow", len([]rune(s.Begins)), len([]rune(s.Rest)), s.Chars)
	}
	left := v.room
	if s := v.said(strings.Repeat("x", 2*roomForText), "/more"); s.More != "/more" || s.Rest != "" || v.room != left {
		t.Errorf("without room: %d bytes follow, more at %q, room %d of %d", len(s.Rest), s.More, v.room, left)
	}
	if s := v.said(strings.Repeat("日", 2*roomForText), ""); s.Rest == "" || v.room < 0-len("…") {
		t.Errorf("without room and another page: %d bytes follow, room %d", len(s.Rest), v.room)
	}
	if s := v.said(strings.Repeat("日", beginning/3), ""); s.Rest+s.More != "" {
		t.Errorf("cut: %+v", s)
	}
}

// TestEveryWordIsExplained checks that the inspector explains every status and source of
// the header and every verdict.
func TestEveryWordIsExplained(t *testing.T) {
	for _, s := range inject.Statuses {
		if _, ok := outcomes[string(s)]; !ok {
			t.Errorf("the status %q is not explained", s)
		}
	}
	for _, v := range []inject.Verdict{inject.Shown, inject.NotValid, inject.OwnWords, inject.Visible, inject.Repeated,
		inject.Empty, inject.NoRoom, inject.Told, inject.Weak} {
		if label, says := verdictOf(string(v)); label == "" || says == "" {
			t.Errorf("the verdict %q is not explained", v)
		}
	}
}

// TestSentences checks that a sentence gets a capital letter and a period, except that a
// command or a setting keeps its first letter.
func TestSentences(t *testing.T) {
	for in, want := range map[string]string{
		"it is down":                       "It is down.",
		"graphiti-proxy registry accept x": "graphiti-proxy registry accept x.",
		"memory.backend is off":            "memory.backend is off.",
		"Really?":                          "Really?",
		"":                                 "",
		"  ":                               "",
	} {
		if got := sentence(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestNumbersAreReadable checks the formats of numbers, counts, durations and times.
func TestNumbersAreReadable(t *testing.T) {
	for got, want := range map[string]string{
		grouped(0): "0", grouped(999): "999", grouped(1000): "1,000", grouped(1234567): "1,234,567", grouped(-1234): "-1,234",
		counted(1, "memory"): "1 memory", counted(2, "memory"): "2 memories", counted(1000, "turn"): "1,000 turns",
		took(0): "0 ms", took(1.23): "1.2 ms", took(345.6): "346 ms", took(1500): "1.5 s", took(90_000): "1m30s",
		utc("2026-11-23T22:54:00+01:00"): "2026-11-23 21:54 UTC", utc("never"): "never",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
