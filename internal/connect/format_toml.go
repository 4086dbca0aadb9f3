package connect

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tomlLine matches a table's header, or a key with a text in one line. Whoever edits a file checks the
// result, so that lines of other values do no harm.
var tomlLine = regexp.MustCompile(`(?m)^[ \t]*(?:(\[+)([^\[\]\n]+)\]+|([^\s=#\[][^=#\n]*?)[ \t]*=[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'))[ \t]*(?:#.*)?\r?$`)

// tomlPlace is the place of a line, and of its text.
type tomlPlace struct {
	start, end int
	from, to   int // -1 in a header
}

// tomlAt returns the place of a header or of a text.
func tomlAt(text []byte, path []string) (p tomlPlace, ok bool) {
	var table []string
	for _, at := range tomlLine.FindAllSubmatchIndex(text, -1) {
		var here []string
		if at[2] < 0 {
			here = slices.Concat(table, tomlPath(text[at[6]:at[7]]))
		} else {
			table = tomlPath(text[at[4]:at[5]])
			if here = table; at[3]-at[2] > 1 {
				table = append(table, "[]") // values of an array have no path here
			}
		}
		if slices.Equal(here, path) {
			return tomlPlace{at[0], lineEnd(text, at[1]), at[8], at[9]}, true
		}
	}
	return p, false
}

// tomlPath splits a dotted key.
func tomlPath(key []byte) (path []string) {
	tree := map[string]any{}
	_ = toml.Unmarshal(append(slices.Clone(key), " = 0"...), &tree) // else it is no key
	for tree != nil {
		var next map[string]any
		for name, v := range tree {
			path = append(path, name)
			next, _ = v.(map[string]any)
		}
		tree = next
	}
	return path
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func quoteTOML(path []string) string {
	var quoted []string
	for _, name := range path {
		if !bareKey.MatchString(name) {
			name = quoteJSON(name)
		}
		quoted = append(quoted, name)
	}
	return strings.Join(quoted, ".")
}

func setTOML(text []byte, path []string, value string) ([]byte, error) {
	if p, ok := tomlAt(text, path); ok && p.from >= 0 {
		return splice(text, p.from, p.to, quoteJSON(value)), nil
	}
	table, line := path[:len(path)-1], quoteTOML(path[len(path)-1:])+" = "+quoteJSON(value)
	if len(table) == 0 {
		return insertLine(text, 0, line), nil
	}
	if p, ok := tomlAt(text, table); ok {
		return insertLine(text, p.end, line), nil
	}
	nl := newline(text)
	line = "[" + quoteTOML(table) + "]" + nl + line
	if len(bytes.TrimSpace(text)) > 0 {
		line = nl + line
	}
	return insertLine(text, len(text), line), nil
}

func removeTOML(text []byte, path []string) ([]byte, error) {
	p, ok := tomlAt(text, path)
	if !ok {
		return nil, fmt.Errorf("%s is gone", strings.Join(path, "."))
	}
	if p.from < 0 { // with the empty line before it
		p.start = min(lineEnd(text, len(bytes.TrimRight(text[:p.start], "\r\n"))), p.start)
	}
	return splice(text, p.start, p.end, ""), nil
}
