package config

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// masked stands for a secret.
const masked = "***"

// Setting is one setting as it is in force.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Settings lists all settings, with secrets masked.
func (c *Config) Settings() []Setting {
	var out []Setting
	for _, f := range c.fields() {
		s := Setting{Key: f.key, Value: f.text(), Origin: c.origins[f.key]}
		if f.secret && s.Value != "" {
			s.Value = masked
		}
		out = append(out, s)
	}
	return out
}

// NeedRestart lists the settings that differ from those a proxy runs with and
// count after a restart.
func NeedRestart(running, read *Config) (keys []string) {
	before := running.fields()
	for i, f := range read.fields() {
		if !f.reload && before[i].text() != f.text() {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// Print writes the settings in the form of a file, each with its origin as a
// comment where origins are asked for.
func (c *Config) Print(w io.Writer, origins bool) {
	group := ""
	for _, s := range c.Settings() {
		name, indent := s.Key, ""
		if g, rest, ok := strings.Cut(s.Key, "."); ok && g != "listen" { // which is a setting itself
			if g != group {
				fmt.Fprintf(w, "%s:\n", g)
			}
			group, name, indent = g, rest, "  "
		}
		value, _ := yaml.Marshal(s.Value) // a string: cannot fail
		line := indent + name + ": " + strings.TrimSpace(string(value))
		if origins {
			line += "  # " + s.Origin
		}
		fmt.Fprintln(w, line)
	}
}

// Reference writes the table of all settings for the documentation.
func Reference(w io.Writer) {
	fmt.Fprint(w, "| key | environment | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range new(Config).fields() {
		doc, def := f.doc, "empty"
		if strings.HasPrefix(f.kind, "one of") || strings.HasPrefix(f.kind, "auto") {
			doc += " (" + f.kind + ")"
		}
		if f.def != "" {
			def = "`" + f.def + "`"
		}
		fmt.Fprintf(w, "| `%s` | `%s` | %s | %s |\n", f.key, f.env(), def, doc)
	}
}
