package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonAt returns the value at the longest existing part of a path, its parent object, and
// its index there.
func jsonAt(root *hujson.Value, path []string) (v *hujson.Value, parent *hujson.Object, index, depth int, err error) {
	v = root
	for i, name := range path {
		var next *hujson.Value
		switch of := v.Value.(type) {
		case *hujson.Object:
			for j := range of.Members {
				if l, ok := of.Members[j].Name.Value.(hujson.Literal); ok && l.String() == name {
					next, parent, index = &of.Members[j].Value, of, j // the last one counts
				}
			}
		case *hujson.Array:
			if n, err := strconv.Atoi(name); err == nil && n < len(of.Elements) {
				next = &of.Elements[n]
			}
		default:
			return nil, nil, 0, 0, fmt.Errorf("%s is not an object", strings.Join(path[:i], "."))
		}
		if next == nil {
			return v, parent, index, i, nil
		}
		v = next
	}
	return v, parent, index, len(path), nil
}

func setJSON(text []byte, path []string, value string) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	v, _, _, depth, err := jsonAt(&root, path)
	if err != nil {
		return nil, err
	}
	if depth == len(path) {
		text = splice(text, v.StartOffset, v.EndOffset, quoteJSON(value))
	} else if obj, ok := v.Value.(*hujson.Object); ok {
		text = insertMember(text, &root, v, obj, path[depth:], value)
	} else {
		return nil, fmt.Errorf("%s is not an object", strings.Join(path[:depth], "."))
	}
	return text, nil
}

func quoteJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string
	return strings.TrimSuffix(b.String(), "\n")
}

// indentAt returns the blanks at the start of the line that contains an offset.
func indentAt(text []byte, offset int) string {
	line := text[lineStart(text, offset):]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// insertMember adds the last member of an object, in the file's own layout.
func insertMember(text []byte, root, v *hujson.Value, obj *hujson.Object, path []string, value string) []byte {
	nl, unit := newline(text), "  "
	if top, ok := root.Value.(*hujson.Object); ok && len(top.Members) > 0 {
		if i := indentAt(text, top.Members[0].Name.StartOffset); i != "" {
			unit = i
		}
	}
	brace, outer := v.EndOffset-1, indentAt(text, v.StartOffset)
	inner := outer + unit
	content := len(bytes.TrimRight(text[:brace], " \t\r\n")) // end of the last member or comment
	member := func(indent string) string {
		s := quoteJSON(value)
		for i := len(path) - 1; i >= 0; i-- {
			in := indent + strings.Repeat(unit, i)
			if s = quoteJSON(path[i]) + ": " + s; i > 0 {
				s = "{" + nl + in + s + nl + strings.TrimSuffix(in, unit) + "}"
			}
		}
		return s
	}
	n := len(obj.Members)
	if n == 0 {
		return splice(text, content, brace, nl+inner+member(inner)+nl+outer)
	}
	last := &obj.Members[n-1].Value
	comma, trailing := ",", ""
	if last.AfterExtra != nil { // the last member has a comma
		comma, trailing = "", ","
	}
	separator := " "
	if bytes.Contains(text[v.StartOffset:brace], []byte("\n")) {
		inner = indentAt(text, obj.Members[n-1].Name.StartOffset)
		separator = nl + inner
	}
	text = splice(text, content, content, separator+member(inner)+trailing)
	return splice(text, last.EndOffset, last.EndOffset, comma)
}

func removeJSON(text []byte, path []string) ([]byte, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	v, parent, i, depth, err := jsonAt(&root, path)
	if err != nil || depth < len(path) {
		return nil, fmt.Errorf("%s is gone", strings.Join(path, "."))
	}
	from, to := parent.Members[i].Name.StartOffset, v.EndOffset
	if i < len(parent.Members)-1 || v.AfterExtra != nil {
		to += len(v.AfterExtra) + 1 // with the comma after it
	}
	if i < len(parent.Members)-1 && !bytes.Contains(text[to:parent.Members[i+1].Name.StartOffset], []byte("\n")) {
		to += len(text[to:]) - len(bytes.TrimLeft(text[to:], " \t")) // one line
	} else {
		from = len(bytes.TrimRight(text[:from], " \t\r\n"))
	}
	if len(parent.Members) == 1 && text[from-1] == '{' {
		to += len(text[to:]) - len(bytes.TrimLeft(text[to:], " \t\r\n"))
	}
	text = splice(text, from, to, "")
	if i > 0 && i == len(parent.Members)-1 && v.AfterExtra == nil {
		before := &parent.Members[i-1].Value // its comma is the last one now
		comma := before.EndOffset + len(before.AfterExtra)
		text = splice(text, comma, comma+1, "")
	}
	return text, nil
}
