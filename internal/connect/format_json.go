package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

func pointer(path []string) (p string) {
	for _, name := range path {
		p += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return p
}

func quoteJSON(s string) string { return string(hujson.String(s)) }

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
		return root.Pack(), nil
	case !isObject:
		return nil, fmt.Errorf("%s is not an object", strings.Join(path[:depth], "."))
	}
	blanks := []byte(newline(text) + "  ")
	if len(obj.Members) > 0 { // as before the first member
		first := obj.Members[0].Name.BeforeExtra
		blanks = first[len(comments(first)):]
	}
	added := any(value)
	for _, name := range slices.Backward(path[depth+1:]) {
		added = map[string]any{name: added}
	}
	tree, err := json.MarshalIndent(added, strings.Trim(string(blanks), "\r\n"), "  ")
	if err != nil {
		return nil, err
	}
	if err := root.Patch(fmt.Appendf(nil, `[{"op": "add", "path": %s, "value": %s}]`, quoteJSON(pointer(path[:depth+1])), tree)); err != nil {
		return nil, err
	}
	own := &obj.Members[len(obj.Members)-1]
	own.Name.BeforeExtra = slices.Concat(comments(own.Name.BeforeExtra), blanks)
	own.Value.BeforeExtra = hujson.Extra(" ")
	if len(obj.Members) == 1 && obj.AfterExtra == nil {
		obj.AfterExtra = hujson.Extra(newline(text))
	}
	return root.Pack(), nil
}

// comments returns the text before the last blanks.
func comments(b hujson.Extra) hujson.Extra { return bytes.TrimRight(b, " \t\r\n") }

func removeJSON(text []byte, path []string) ([]byte, error) {
	root, err := hujson.Parse(text)
	if err == nil {
		err = root.Patch(fmt.Appendf(nil, `[{"op": "remove", "path": %s}]`, quoteJSON(pointer(path))))
	}
	return root.Pack(), err
}
