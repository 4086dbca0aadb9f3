package connect

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlLine is a table's header or a value, with its place in the text.
type tomlLine struct {
	path     []string // with its table
	isTable  bool
	start    int // of its line
	from, to int // of the value
	end      int // of the expression
}

// tomlLines returns the headers and values of a file.
func tomlLines(text []byte) (lines []tomlLine, err error) {
	var p unstable.Parser
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.KeyValue && e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		var path []string
		keys, first := e.Key(), -1
		for keys.Next() {
			k := keys.Node()
			if path = append(path, string(k.Data)); first < 0 {
				first = int(k.Raw.Offset)
			}
		}
		l := tomlLine{path: path, isTable: e.Kind != unstable.KeyValue, start: lineStart(text, first)}
		if l.isTable {
			if table = path; e.Kind == unstable.ArrayTable {
				table = append(slices.Clip(path), "[]") // its values have no path here
			}
			l.path = table
		} else {
			l.path = slices.Concat(table, path)
			v := e.Value()
			l.from, l.to, l.end = int(v.Raw.Offset), int(v.Raw.Offset+v.Raw.Length), int(e.Raw.Offset+e.Raw.Length)
		}
		lines = append(lines, l)
	}
	return lines, p.Error()
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
	lines, err := tomlLines(text)
	if err != nil {
		return nil, err
	}
	table, name := path[:len(path)-1], path[len(path)-1:]
	line := quoteTOML(name) + " = " + quoteJSON(value)
	after, first := -1, len(text) // offset after the table's last line, and of the first header
	if len(table) == 0 {
		after = 0
	}
	for _, l := range lines {
		switch {
		case !l.isTable && slices.Equal(l.path, path):
			return splice(text, l.from, l.to, quoteJSON(value)), nil
		case l.isTable:
			first = min(first, l.start)
			if len(table) > 0 && slices.Equal(l.path, table) {
				after = lineEnd(text, l.start)
			}
		case slices.Equal(l.path[:len(l.path)-1], table) && (len(table) > 0 || l.start < first):
			after = lineEnd(text, l.end-1)
		}
	}
	switch {
	case after >= 0:
		return insertLine(text, after, line), nil
	case len(bytes.TrimSpace(text)) == 0:
		return insertLine(text, len(text), "["+quoteTOML(table)+"]\n"+line), nil
	}
	nl := newline(text)
	return insertLine(text, len(text), nl+"["+quoteTOML(table)+"]"+nl+line), nil
}

func removeTOML(text []byte, path []string) ([]byte, error) {
	lines, err := tomlLines(text)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		if slices.Equal(l.path, path) {
			start := l.start
			if l.isTable { // with the empty line before it
				start = len(bytes.TrimRight(text[:start], "\r\n"))
				start = min(lineEnd(text, start), l.start)
			}
			return splice(text, start, lineEnd(text, l.start), ""), nil
		}
	}
	return nil, fmt.Errorf("%s is gone", strings.Join(path, "."))
}
