package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	long := "The server moved to Oslo in May, and to Bergen in June."
	for _, tc := range []struct {
		name  string
		width int // 0 without a terminal
		text  string
	}{
		{"without a terminal, cells are whole", 0, long},
		{"a wide terminal", 80, long},
		{"a terminal of the exact width", 7 + len(long), long},
		{"the widest column is cut", 40, "The server moved to Oslo in May,…"},
		{"a narrow terminal", 10, "The server moved to…"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			table := Table{Indent: "  "}
			table.Row("ID", If(false, "HIDDEN"), "TEXT")
			table.Row(1, If(false, ""), long)
			table.Row(200, If(false, ""), "a\n\x1b\tb")
			table.Row("said by a person: " + long)
			if tc.width > 0 {
				table.fit(tc.width)
			}
			var out bytes.Buffer
			table.Print(&out)
			want := []string{"  ID   TEXT", "  1    " + tc.text, "  200  a b", "  said by a person: " + long, ""}
			if diff := cmp.Diff(want, strings.Split(out.String(), "\n")); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	for _, tc := range []struct {
		total, read int64
		want        string
	}{
		{1000, 250, "\r\x1b[K1 line, 25% of the file\r\x1b[K5 lines, 25% of the file\n"},
		{1000, 1500, "\r\x1b[K1 line, 100% of the file\r\x1b[K5 lines, 100% of the file\n"},
		{0, 500, "\r\x1b[K1 line\r\x1b[K5 lines\n"},
	} {
		for _, isTerminal := range []bool{true, false} {
			var b bytes.Buffer
			p := NewProgress(&b, "line", tc.total)
			if isTerminal {
				p.w = &b
			} else {
				tc.want = ""
			}
			p.read = tc.read
			p.Show(1)
			p.Show(5)
			p.End()
			if got := b.String(); got != tc.want {
				t.Errorf("%d of %d bytes, terminal %v: %q, want %q", tc.read, tc.total, isTerminal, got, tc.want)
			}
		}
	}
}

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
