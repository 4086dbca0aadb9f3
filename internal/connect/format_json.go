package connect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// pointer returns the JSON pointer of a path.
func pointer(path []string) (p string) {
	for _, name := range path {
		p += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return p
}

func setJSON(text []byte, path []string, value string) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	depth := len(path)
	for root.Find(pointer(path[:depth])) == nil {
		depth--
	}
	v := root.Find(pointer(path[:depth]))
	obj, isObject := v.Value.(*hujson.Object)
	switch {
	case depth == len(path):
		v.Value = hujson.String(value)
	case isObject:
		addMember(text, &root, v, obj, path[depth:], value)
	default:
		return nil, fmt.Errorf("%s is not an object", strings.Join(path[:depth], "."))
	}
	return root.Pack(), nil
}

func quoteJSON(s string) string { return string(hujson.String(s)) }

// indentAt returns the blanks at the start of the line that contains an offset.
func indentAt(text []byte, offset int) string {
	line := text[lineStart(text, offset):]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// comments returns what precedes the last blanks.
func comments(b hujson.Extra) hujson.Extra { return bytes.TrimRight(b, " \t\r\n") }

// addMember adds the last member of an object, in the file's own layout.
func addMember(text []byte, root, v *hujson.Value, obj *hujson.Object, path []string, value string) {
	nl, unit := newline(text), "  "
	if top, ok := root.Value.(*hujson.Object); ok && len(top.Members) > 0 {
		if i := indentAt(text, top.Members[0].Name.StartOffset); i != "" {
			unit = i
		}
	}
	outer, n := indentAt(text, v.StartOffset), len(obj.Members)
	inner := outer + unit
	blanks, end := nl+inner, nl+outer
	if n > 0 {
		end = string(obj.AfterExtra[len(comments(obj.AfterExtra)):])
		if blanks = " "; bytes.Contains(text[v.StartOffset:v.EndOffset], []byte("\n")) {
			inner = indentAt(text, obj.Members[n-1].Name.StartOffset)
			blanks = nl + inner
		}
	}
	added := hujson.Value{BeforeExtra: hujson.Extra(" "), Value: hujson.String(value)}
	for i := len(path) - 1; i > 0; i-- {
		in := nl + inner + strings.Repeat(unit, i-1)
		member := hujson.ObjectMember{Name: hujson.Value{BeforeExtra: hujson.Extra(in + unit), Value: hujson.String(path[i])}, Value: added}
		added.Value = &hujson.Object{Members: []hujson.ObjectMember{member}, AfterExtra: hujson.Extra(in)}
	}
	if n > 0 && obj.Members[n-1].Value.AfterExtra != nil {
		added.AfterExtra = hujson.Extra{} // a comma
	}
	before := append(comments(obj.AfterExtra), blanks...)
	obj.AfterExtra = hujson.Extra(end)
	obj.Members = append(obj.Members, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(path[0])}, Value: added})
}

func removeJSON(text []byte, path []string) ([]byte, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	v, parent := root.Find(pointer(path)), root.Find(pointer(path[:len(path)-1]))
	if v == nil {
		return nil, fmt.Errorf("%s is gone", strings.Join(path, "."))
	}
	obj := parent.Value.(*hujson.Object) //nolint:forcetypeassert // no path ends with the number of an element
	i := slices.IndexFunc(obj.Members, func(m hujson.ObjectMember) bool { return m.Name.Value.(hujson.Literal).String() == path[len(path)-1] })
	before, comma := obj.Members[i].Name.BeforeExtra, v.AfterExtra
	obj.Members = slices.Delete(obj.Members, i, i+1)
	after, n := &obj.AfterExtra, len(obj.Members)
	switch {
	case i < n:
		if after = &obj.Members[i].Name.BeforeExtra; !bytes.Contains(*after, []byte("\n")) { // one line
			*after = before
			return root.Pack(), nil
		}
	case n > 0:
		last := &obj.Members[n-1].Value
		last.AfterExtra, before = comma, slices.Concat(last.AfterExtra, before) // as before: a comma, or none
	case len(comments(before)) == 0:
		*after = bytes.TrimLeft(*after, " \t\r\n")
	}
	*after = slices.Concat(comments(before), *after)
	return root.Pack(), nil
}
