package config

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// masked replaces a secret.
const masked = "***"

// Setting is one setting with its current value.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"` // of a JSON type
	Origin string `json:"origin"`
}

// Settings returns all settings, with masked secrets.
func (c *Config) Settings() []Setting {
	var out []Setting
	for _, f := range c.fields() {
		s := Setting{Key: f.key, Value: f.plain(), Origin: c.origins[f.key]}
		if f.secret && f.text() != "" {
			s.Value = masked
		}
		out = append(out, s)
	}
	return out
}

// NeedRestart returns the settings that differ from the running proxy's and take effect
// only after a restart.
func NeedRestart(running, read *Config) (keys []string) {
	before := running.fields()
	for i, f := range read.fields() {
		if !f.reload && withoutLogin(before[i].text()) != withoutLogin(f.text()) {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// withoutLogin returns an address without its user and password, which new connections read again.
func withoutLogin(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		u.User = nil
		return u.String()
	}
	return text
}

// Print writes the settings in the format of a file, optionally with their origins as
// comments. Secrets are comments too, so that the file is usable without them.
func (c *Config) Print(w io.Writer, origins bool) {
	group := ""
	for _, s := range c.Settings() {
		var name, indent string
		group, name, indent = below(w, group, s.Key)
		line := indent + name + ": " + inYAML(s.Value)
		if s.Value == masked {
			line = indent + "# " + name + ": '***'  # fill in"
		}
		if origins && s.Value == masked {
			line += ", " + s.Origin
		} else if origins {
			line += "  # " + s.Origin
		}
		fmt.Fprintln(w, line)
	}
}

// below writes the head of a group if the key starts a new one.
func below(w io.Writer, group, key string) (of, name, indent string) {
	of, name, ok := strings.Cut(key, ".")
	if !ok || of == "listen" || of == "proof" { // these are settings themselves
		return "", key, ""
	}
	if of != group {
		fmt.Fprintf(w, "%s:\n", of)
	}
	return of, name, "  "
}

// inYAML formats a value in one line of YAML.
func inYAML(v any) string {
	if list, ok := v.([]string); ok {
		items := make([]string, len(list))
		for i, it := range list {
			items[i] = inYAML(it)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	if named, ok := v.(map[string]string); ok {
		var items []string
		for _, name := range slices.Sorted(maps.Keys(named)) {
			items = append(items, name+": "+inYAML(named[name]))
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	b, _ := yaml.Marshal(v) // a plain value: cannot fail
	return strings.TrimSpace(string(b))
}

// Template writes a configuration file with every setting and its meaning as comments, so that the
// defaults apply. If short, it writes the settings that most people change. Deleting the first
// character of a line puts a setting into force.
func Template(w io.Writer, short bool) {
	fmt.Fprint(w, "# Settings of graphiti-proxy. A setting in a comment has its default.\n"+
		"# graphiti-proxy config check finds mistakes; graphiti-proxy config print shows the effective settings.\n")
	if short {
		fmt.Fprint(w, "# graphiti-proxy init - prints all settings.\n")
	}
	for _, f := range new(Config).fields() {
		if short && !f.usual {
			continue
		}
		fmt.Fprintln(w)
		for line := range strings.SplitSeq(wrapped(f.about(), 78), "\n") {
			fmt.Fprintf(w, "# %s\n", line)
		}
		_ = f.set(f.def)
		fmt.Fprintf(w, "#%s: %s\n", f.key, inYAML(f.plain()))
	}
}

// about returns a setting's meaning and allowed values.
func (f *field) about() string {
	if strings.HasPrefix(f.kind, "one of") || strings.HasPrefix(f.kind, "auto") {
		return f.doc + " (" + f.kind + ")"
	}
	return f.doc
}

// wrapped breaks a text into lines of at most the given bytes, unless a word is longer.
func wrapped(text string, most int) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(text) {
		if n > 0 && n+1+len(word) > most {
			b.WriteByte('\n')
			n = 0
		} else if n > 0 {
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += len(word)
	}
	return b.String()
}
