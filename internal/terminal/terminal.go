// Package terminal owns the output of commands for people: printable text, tables, JSON
// and progress.
package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Is reports whether a reader or writer is a terminal.
func Is(file any) bool {
	f, ok := file.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// JSON prints v as JSON.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Table is a table for people. A row with fewer cells than the first one ends with text that
// belongs to no column.
type Table struct {
	Indent string
	rows   [][]string
}

// Row adds a row, and omits the cells that are nil.
func (t *Table) Row(cells ...any) {
	var row []string
	for _, c := range cells {
		if c != nil {
			row = append(row, oneLine(fmt.Sprint(c)))
		}
	}
	t.rows = append(t.rows, row)
}

// If returns a cell, or nil unless the table has its column.
func If(has bool, cell any) any {
	if has {
		return cell
	}
	return nil
}

// Print prints the rows with aligned columns. On a terminal, it shortens the widest column if
// the rows do not fit.
func (t *Table) Print(w io.Writer) {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			t.fit(width)
		}
	}
	aligned := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintln(aligned, t.Indent+strings.Join(row, "\t"))
	}
	_ = aligned.Flush()
}

const (
	gap      = 2  // blanks between columns
	leastFit = 20 // characters of a shortened column
)

// fit shortens the cells of the widest column until rows have at most a number of characters.
func (t *Table) fit(width int) {
	var widths []int
	full := slices.DeleteFunc(slices.Clone(t.rows), func(row []string) bool { return len(row) < len(t.rows[0]) })
	for _, row := range full {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	all := len(t.Indent) - gap
	widest := 0
	for i, n := range widths {
		all += n + gap
		if n > widths[widest] {
			widest = i
		}
	}
	for _, row := range full {
		if all > width {
			row[widest] = cut(row[widest], max(leastFit, widths[widest]-(all-width)))
		}
	}
}

func cut(s string, n int) string {
	if utf8.RuneCountInString(s) > n {
		return string([]rune(s)[:n-1]) + "…"
	}
	return s
}

// Count returns a number with its noun, such as "3 turns".
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Row returns a text as one line, cut to n characters on a terminal.
func Row(w io.Writer, s string, n int) string {
	if s = oneLine(s); Is(w) {
		return cut(s, n)
	}
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(Printable(s)), " ") }

// Printable returns a text without control characters, except white space and joiners in words:
// the text may be hostile, and a terminal would obey them.
func Printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsSpace(r) || unicode.IsPrint(r) || words.Joins(s, i) {
			b.WriteRune(r)
		}
	}
	return b.String()
}
