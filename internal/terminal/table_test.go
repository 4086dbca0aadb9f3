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
