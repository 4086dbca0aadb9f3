package terminal

import "testing"

func TestPrintable(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"controls and escapes", "a\x1b[31mb\x07\x00c", "a[31mbc"},
		{"white space", "a\n\tb\u00a0c", "a\n\tb\u00a0c"},
		{"marks of direction and tags", "a\u202eb\u200bc\U000e0041", "abc"},
		{"a joiner in a Persian word", "سبوس\u200cدار", "سبوس\u200cدار"},
		{"joiners in Hindi words", "क्\u200dष क्\u200cष", "क्\u200dष क्\u200cष"},
		{"joiners beside and in other words", "\u200cسبوس\u200c bil\u200cling 猫\u200d狗", "سبوس billing 猫狗"},
	} {
		if got := Printable(tc.text); got != tc.want {
			t.Errorf("%s: Printable(%q) = %q, want %q", tc.name, tc.text, got, tc.want)
		}
	}
}
