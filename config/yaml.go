package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yaml applies a file's settings. It walks over the nodes, which have line
// numbers.
func (l *loader) yaml(path string, b []byte) {
	name := filepath.Base(path)
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		l.fail(yamlMistake(name, b, err))
		return
	}
	if len(doc.Content) == 0 {
		return // an empty file
	}
	l.walk(name, "", doc.Content[0], make(map[string]bool))
}

func (l *loader) walk(name, prefix string, n *yaml.Node, seen map[string]bool) {
	if n.Kind != yaml.MappingNode {
		l.fail(fmt.Errorf("%s:%d: %s expects settings below it, as in \"recall:\" and then, indented, \"timeout: 400ms\"", name, n.Line, orTop(prefix)))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := k.Value
		if prefix != "" {
			key = prefix + "." + k.Value
		}
		where := fmt.Sprintf("%s:%d: ", name, k.Line)
		switch f := l.fields[key]; {
		case seen[key]:
			l.fail(fmt.Errorf("%s%s is given twice; keep one", where, key))
		case f != nil && (v.Kind != yaml.MappingNode || strings.HasPrefix(f.kind, "name=") || !l.group(key)):
			s, err := f.scalar(v)
			if err != nil {
				l.fail(fmt.Errorf("%s%s: %w", where, key, err))
			} else {
				l.give(s, fmt.Sprintf("%s:%d", name, k.Line), where, f)
			}
		case l.group(key):
			l.walk(name, key, v, seen)
		default:
			l.fail(fmt.Errorf("%s%s", where, unknown(key, maps.Keys(l.fields))))
		}
		seen[key] = true
	}
}

func orTop(prefix string) string {
	if prefix == "" {
		return "the file"
	}
	return prefix
}

// group reports whether the key is a prefix of settings.
func (l *loader) group(key string) bool {
	for k := range l.fields {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// scalar returns a node's value. Lists and maps become one string, separated by
// commas.
func (f *field) scalar(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.MappingNode:
		if !strings.HasPrefix(f.kind, "name=") {
			break
		}
		var items []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i+1].Kind != yaml.ScalarNode {
				return "", fmt.Errorf("%s needs a plain value", n.Content[i].Value)
			}
			items = append(items, n.Content[i].Value+"="+n.Content[i+1].Value)
		}
		return strings.Join(items, ","), nil
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "", nil
		}
		return n.Value, nil
	case yaml.SequenceNode:
		var items []string
		for _, it := range n.Content {
			if it.Kind != yaml.ScalarNode {
				return "", errors.New("a list holds plain values only")
			}
			items = append(items, it.Value)
		}
		return strings.Join(items, ","), nil
	}
	return "", errors.New("expects a plain value or a list")
}
