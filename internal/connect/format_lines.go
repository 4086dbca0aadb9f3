package connect

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// yamlAt returns the key and the value at a path, and the mapping that contains them. key
// is nil if only the mapping exists.
func yamlAt(text []byte, path []string) (key, value, in *yaml.Node, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, nil, nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil, nil, nil
	}
	value = doc.Content[0]
	for i, name := range path {
		in, key = value, nil
		switch in.Kind {
		case yaml.MappingNode:
			for j := 0; j+1 < len(in.Content); j += 2 {
				if in.Content[j].Value == name {
					key, value = in.Content[j], in.Content[j+1]
				}
			}
		case yaml.SequenceNode:
			if n, err := strconv.Atoi(name); err == nil && n < len(in.Content) {
				key, value = in.Content[n], in.Content[n]
			}
		}
		if key == nil {
			if i < len(path)-1 {
				err = fmt.Errorf("%s is missing", strings.Join(path[:i+1], "."))
			}
			return nil, nil, in, err
		}
	}
	return key, value, in, nil
}

// yamlOffset returns the offset of a node. Columns count characters.
func yamlOffset(text []byte, n *yaml.Node) int {
	offset := 0
	for range n.Line - 1 {
		offset = lineEnd(text, offset)
	}
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(text[offset:])
		offset += size
	}
	return offset
}

// yamlEnd returns the offset after a plain or quoted value of one line.
func yamlEnd(text []byte, n *yaml.Node) (int, error) {
	from := yamlOffset(text, n)
	line := text[from:lineEnd(text, from)]
	for to := len(line); to > 0; to-- {
		var s string
		if yaml.Unmarshal(line[:to], &s) == nil && s == n.Value && !bytes.ContainsAny(line[to-1:to], " \t\r\n") && !bytes.Contains(line[:to], []byte(" #")) {
			return from + to, nil
		}
	}
	return 0, fmt.Errorf("line %d: a value of several lines cannot be edited", n.Line)
}

func setYAML(text []byte, path []string, value string) ([]byte, error) {
	key, old, in, err := yamlAt(text, path)
	if err != nil {
		return nil, err
	}
	line := path[len(path)-1] + ": " + value
	switch {
	case key != nil:
		end, err := yamlEnd(text, old)
		if err != nil {
			return nil, err
		}
		return splice(text, yamlOffset(text, old), end, value), nil
	case in == nil:
		return insertLine(text, len(text), line), nil
	case in.Kind != yaml.MappingNode || in.Style&yaml.FlowStyle != 0 || len(in.Content) == 0:
		return nil, fmt.Errorf("line %d: a mapping in this form cannot be edited", in.Line)
	}
	first := yamlOffset(text, in.Content[0])
	return splice(text, first, first, line+newline(text)+strings.Repeat(" ", in.Content[0].Column-1)), nil
}

func removeYAML(text []byte, path []string) ([]byte, error) {
	key, _, in, err := yamlAt(text, path)
	if err != nil || key == nil {
		return nil, fmt.Errorf("%s is gone", strings.Join(path, "."))
	}
	from := yamlOffset(text, key)
	if len(bytes.TrimSpace(text[lineStart(text, from):from])) == 0 {
		return splice(text, lineStart(text, from), lineEnd(text, from), ""), nil
	}
	if i := slices.Index(in.Content, key); i+2 < len(in.Content) { // after a dash
		return splice(text, from, yamlOffset(text, in.Content[i+2]), ""), nil
	}
	return nil, fmt.Errorf("line %d: the only value of an element cannot be removed", key.Line)
}

// assignment is the dotenv package's form of an assignment.
var assignment = regexp.MustCompile("(?m)^[ \t]*(?:export[ \t]+)?([\\w.-]+)(?:[ \t]*=|:[ \t])[ \t]*" +
	"('(?:\\\\'|[^'])*'|\"(?:\\\\\"|[^\"])*\"|`(?:\\\\`|[^`])*`|[^#\r\n]*)[ \t]*(?:#.*)?\r?$")

// dotenvLine is an assignment with its place in the text.
type dotenvLine struct {
	name       string
	start, end int // of its lines
	from, to   int // of the value within its quotes
}

func dotenvLines(text []byte) (lines []dotenvLine) {
	for _, at := range assignment.FindAllSubmatchIndex(text, -1) {
		from := at[4]
		to := from + len(bytes.TrimRight(text[from:at[5]], " \t"))
		if n := to - from; n > 1 && text[from] == text[to-1] && bytes.IndexByte([]byte("'\"`"), text[from]) >= 0 {
			from, to = from+1, to-1
		}
		lines = append(lines, dotenvLine{string(text[at[2]:at[3]]), at[0], lineEnd(text, to), from, to})
	}
	return lines
}

func decodeDotenv(text []byte) (map[string]any, error) {
	tree := map[string]any{}
	for _, l := range dotenvLines(text) {
		tree[l.name] = string(text[l.from:l.to])
	}
	return tree, nil
}

func setDotenv(text []byte, path []string, value string) ([]byte, error) {
	for _, l := range slices.Backward(dotenvLines(text)) { // the last one counts
		if l.name == path[0] {
			return splice(text, l.from, l.to, value), nil
		}
	}
	return insertLine(text, len(text), path[0]+"="+value), nil
}

func removeDotenv(text []byte, path []string) ([]byte, error) {
	for _, l := range slices.Backward(dotenvLines(text)) {
		if l.name == path[0] {
			return splice(text, l.start, l.end, ""), nil
		}
	}
	return nil, fmt.Errorf("%s is gone", path[0])
}
