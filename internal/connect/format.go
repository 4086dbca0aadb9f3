package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// format edits settings files. set and remove change one text value and leave every other
// byte. set replaces a value, or adds it with its missing parents.
type format struct {
	decode func(text []byte) (map[string]any, error)
	set    func(text []byte, path []string, value string) ([]byte, error)
	remove func(text []byte, path []string) ([]byte, error)
}

// The formats of clients. Strict JSON rejects comments and trailing commas.
var (
	strictJSON = inFile(format{decodeJSON, setJSON, removeJSON})
	jsonC      = inFile(format{decodeJSONC, setJSON, removeJSON})
	tomlFile   = inFile(format{decodeTOML, setTOML, removeTOML})
	yamlFile   = inFile(format{decodeYAML, setYAML, removeYAML})
	dotenv     = inFile(format{decodeDotenv, setDotenv, removeDotenv})
)

// inFile returns a format for files, which may begin with a byte order mark.
func inFile(f format) *format {
	edit := func(file []byte, edit func(text []byte) ([]byte, error)) ([]byte, error) {
		text, marked := bytes.CutPrefix(file, byteOrderMark)
		text, err := edit(text)
		if err == nil && marked {
			text = slices.Concat(byteOrderMark, text)
		}
		return text, err
	}
	return &format{
		decode: func(file []byte) (map[string]any, error) { return f.decode(bytes.TrimPrefix(file, byteOrderMark)) },
		set: func(file []byte, path []string, value string) ([]byte, error) {
			return edit(file, func(text []byte) ([]byte, error) { return f.set(text, path, value) })
		},
		remove: func(file []byte, path []string) ([]byte, error) {
			return edit(file, func(text []byte) ([]byte, error) { return f.remove(text, path) })
		},
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// formats are the formats by name.
var formats = map[string]*format{"json": strictJSON, "jsonc": jsonC, "toml": tomlFile, "yaml": yamlFile, "dotenv": dotenv}

var errNoObject = errors.New("the file is not an object; correct it, or move it away")

func decodeJSON(text []byte) (tree map[string]any, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	err = json.Unmarshal(text, &tree)
	var syntax *json.SyntaxError
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other), err == nil && tree == nil:
		err = errNoObject
	case errors.As(err, &syntax):
		err = fmt.Errorf("line %d: %w; this client ignores a file with comments, trailing commas or other errors", 1+bytes.Count(text[:syntax.Offset], []byte("\n")), err)
	}
	return tree, err
}

func decodeJSONC(text []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	plain, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, err
	}
	return decodeJSON(plain)
}

func decodeTOML(text []byte) (map[string]any, error) {
	tree := map[string]any{}
	return tree, toml.Unmarshal(text, &tree)
}

func decodeYAML(text []byte) (map[string]any, error) {
	tree := map[string]any{}
	err := yaml.Unmarshal(text, &tree)
	if other := any(nil); err != nil && yaml.Unmarshal(text, &other) == nil {
		err = errNoObject
	}
	return tree, err
}

// at returns the value at a path, and the number of the path's elements that exist.
func at(tree any, path []string) (value any, depth int) {
	for i, name := range path {
		var next any
		found := false
		switch of := tree.(type) {
		case map[string]any:
			next, found = of[name]
		case []any:
			if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(of) {
				next, found = of[n], true
			}
		}
		if !found {
			return nil, i
		}
		tree = next
	}
	return tree, len(path)
}

// textAt returns the text at a path, or "".
func textAt(tree any, path ...string) string {
	v, _ := at(tree, path)
	s, _ := v.(string)
	return s
}

// expand returns the existing paths of a pattern, in which * means every element.
func expand(tree any, pattern []string) (paths [][]string) {
	star := slices.Index(pattern, "*")
	if star < 0 {
		return [][]string{pattern}
	}
	var names []string
	switch of, _ := at(tree, pattern[:star]); of := of.(type) {
	case map[string]any:
		names = slices.Sorted(maps.Keys(of))
	case []any:
		for i := range of {
			names = append(names, strconv.Itoa(i))
		}
	}
	for _, name := range names {
		one := slices.Concat(pattern[:star], []string{name}, pattern[star+1:])
		paths = append(paths, expand(tree, one)...)
	}
	return paths
}

// Change is one value in a settings file.
type Change struct {
	Path  []string `json:"path"`
	Value string   `json:"value"`
	Old   *string  `json:"old"`   // nil if there was no value
	Depth int      `json:"depth"` // number of the path's elements that existed
}

// apply writes a change, and checks that it changed nothing else.
func (f *format) apply(text []byte, c *Change) ([]byte, error) {
	want, err := f.decode(text)
	if err != nil {
		return nil, err
	}
	old, depth := at(want, c.Path)
	if c.Depth = depth; depth == len(c.Path) {
		s, ok := old.(string)
		if !ok {
			return nil, c.byHand(fmt.Errorf("%s is not a text", strings.Join(c.Path, ".")))
		}
		c.Old = &s
	}
	edited, err := f.set(text, c.Path, c.Value)
	if err != nil {
		return nil, c.byHand(err)
	}
	got, err := f.decode(edited)
	if err != nil || !put(want, c.Path, c.Value) || !reflect.DeepEqual(got, want) {
		return nil, c.byHand(fmt.Errorf("%s is written in a form that cannot be edited", strings.Join(c.Path, ".")))
	}
	return edited, nil
}

// byHand adds the remedy to the reason why a change is impossible.
func (c *Change) byHand(err error) error {
	return fmt.Errorf("%w; set %s to %s yourself", err, strings.Join(c.Path, "."), c.Value)
}

// put sets a value in a tree, and reports whether the parents allow it.
func put(tree any, path []string, value string) bool {
	switch of := tree.(type) {
	case map[string]any:
		if len(path) == 1 {
			of[path[0]] = value
			return true
		}
		if _, ok := of[path[0]]; !ok {
			of[path[0]] = map[string]any{}
		}
		return put(of[path[0]], path[1:], value)
	case []any:
		n, err := strconv.Atoi(path[0])
		return err == nil && n < len(of) && len(path) > 1 && put(of[n], path[1:], value)
	}
	return false
}

// undo takes a change out of a text that others have edited since. It leaves a value that
// is not the change's.
func (f *format) undo(text []byte, c *Change) ([]byte, error) {
	tree, err := f.decode(text)
	if err != nil || textAt(tree, c.Path...) != c.Value {
		return text, err
	}
	if c.Old != nil {
		return f.set(text, c.Path, *c.Old)
	}
	for n := len(c.Path); n > c.Depth; n-- { // the value, and parents that are empty now
		if parent, _ := at(tree, c.Path[:n]); n < len(c.Path) && !reflect.DeepEqual(parent, map[string]any{}) {
			break
		}
		if text, err = f.remove(text, c.Path[:n]); err != nil {
			return nil, err
		}
		if tree, err = f.decode(text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// lineStart returns the offset of the line that contains an offset.
func lineStart(text []byte, offset int) int { return bytes.LastIndexByte(text[:offset], '\n') + 1 }

// lineEnd returns the offset after the end of the line that contains an offset.
func lineEnd(text []byte, offset int) int {
	if i := bytes.IndexByte(text[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(text)
}

func newline(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// splice replaces text[from:to].
func splice(text []byte, from, to int, by string) []byte {
	return slices.Concat(text[:from], []byte(by), text[to:])
}

// insertLine inserts a line at the start of a line or at the end of the text.
func insertLine(text []byte, offset int, line string) []byte {
	if offset == len(text) && offset > 0 && text[offset-1] != '\n' {
		return splice(text, offset, offset, newline(text)+line)
	}
	return splice(text, offset, offset, line+newline(text))
}
