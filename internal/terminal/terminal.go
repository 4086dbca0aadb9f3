// Package terminal owns the output of commands for people: printable text, tables, JSON
// and progress.
//
// It must not know the contents, and it imports no other package of this module.
package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// Is reports whether a reader or writer is a terminal.
func Is(file any) bool {
	f, ok := file.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// JSON prints v as JSON.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Table aligns cells with tabs between them, until it is flushed.
func Table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Count returns a number with its noun, such as "3 turns".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Row returns a text as one line for a table, cut to n characters on a
// terminal.
func Row(w io.Writer, s string, n int) string {
	s = strings.Join(strings.Fields(Printable(s)), " ")
	if Is(w) && utf8.RuneCountInString(s) > n {
		return string([]rune(s)[:max(0, n-1)]) + "…"
	}
	return s
}

// Printable returns a text without control characters, except white space: the text may
// be hostile, and a terminal would obey them.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
}
