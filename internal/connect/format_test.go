package connect

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:8787/v1"
	for _, c := range []struct {
		name   string
		format *format
		path   string
		text   string
		want   string // after apply
		undone string // after undo, if not text
	}{
		{"json: no file", strictJSON, "env.U", "", "{\n  \"env\": {\n    \"U\": \"URL\"\n  }\n}\n", "{\n}\n"},
		{"json: last member", strictJSON, "env.U", "{\n\t\"a\": 1,\n\t\"env\": {\n\t\t\"B\": \"<x>\"\n\t}\n}", "{\n\t\"a\": 1,\n\t\"env\": {\n\t\t\"B\": \"<x>\",\n\t\t\"U\": \"URL\"\n\t}\n}", ""},
		{"json: one line", strictJSON, "env.U", `{"a": 1}`, `{"a": 1,"env": {` + "\n  \"U\": \"URL\"\n}}", ""},
		{"json: CRLF", strictJSON, "U", "{\r\n  \"a\": 1\r\n}\r\n", "{\r\n  \"a\": 1,\r\n  \"U\": \"URL\"\n}\r\n", "{\r\n  \"a\": 1\n}\r\n"},
		{"json: replaced", strictJSON, "U", `{"U": "https://other", "b": [ ]}`, `{"U": "URL", "b": [ ]}`, ""},
		{"jsonc: comments", jsonC, "p.o.U", "{\n  // first\n  \"p\": {\n    \"o\": {\n      \"k\": 1 // last\n    }\n  },\n  /* end */\n}\n",
			"{\n  // first\n  \"p\": {\n    \"o\": {\n      \"k\": 1, // last\n      \"U\": \"URL\"\n    }\n  },\n  /* end */\n}\n", "{\n  // first\n  \"p\": {\n    \"o\": {\n      \"k\": 1 // last\n      }\n  },\n  /* end */\n}\n"},
		{"jsonc: trailing comma", jsonC, "U", "{\n  \"a\": 1,\n}\n", "{\n  \"a\": 1,\n  \"U\": \"URL\"\n}\n", "{\n  \"a\": 1\n}\n"},
		{"jsonc: only a comment", jsonC, "U", "{\n  // nothing yet\n}\n", "{\n  \"U\": \"URL\"\n  // nothing yet\n}\n", ""},
		{"toml: before the tables", tomlFile, "U", "# mine\nmodel = \"m\" # this\n\n[t]\nU = 1\n", "U = \"URL\"\n# mine\nmodel = \"m\" # this\n\n[t]\nU = 1\n", ""},
		{"toml: only tables", tomlFile, "U", "[t]\na = 1\n", "U = \"URL\"\n[t]\na = 1\n", ""},
		{"toml: value of several lines", tomlFile, "U", "a = [\n  1,\n  2,\n]\n[t]\n", "U = \"URL\"\na = [\n  1,\n  2,\n]\n[t]\n", ""},
		{"toml: in a table", tomlFile, "p.x y.U", "[p.\"x y\"]\nU = 'https://other'  # why\n\n[q]\n", "[p.\"x y\"]\nU = \"URL\"  # why\n\n[q]\n", "[p.\"x y\"]\nU = \"https://other\"  # why\n\n[q]\n"},
		{"toml: new table", tomlFile, "p.x.U", "a = 1", "a = 1\n\n[p.x]\nU = \"URL\"", "a = 1\n"},
		{"yaml: top", yamlFile, "U", "# mine\na: 1 # one\n", "# mine\nU: URL\na: 1 # one\n", ""},
		{"yaml: no file", yamlFile, "U", "", "U: URL\n", ""},
		{"yaml: element", yamlFile, "models.0.U", "models:\n  - name: é # é\n    key: k\n", "models:\n  - U: URL\n    name: é # é\n    key: k\n", ""},
		{"yaml: replaced", yamlFile, "models.0.U", "models:\n  - name: a\n    U: \"https://other\"   # why\n", "models:\n  - name: a\n    U: URL   # why\n", "models:\n  - name: a\n    U: https://other   # why\n"},
		{"dotenv: added", dotenv, "U", "# mine\nA='1'", "# mine\nA='1'\nU=URL", "# mine\nA='1'\n"},
		{"dotenv: replaced", dotenv, "U", "export U=https://other\r\nA=1\r\n", "export U=URL\r\nA=1\r\n", ""},
		{"dotenv: quoted, with a comment", dotenv, "U", "export U = \"https://other\"  # mine\n", "export U = \"URL\"  # mine\n", ""},
		{"dotenv: not quoted, with a comment", dotenv, "U", "U=https://other # mine\nA=1", "U=URL # mine\nA=1", ""},
		{"dotenv: empty", dotenv, "U", "U=''\nA=1", "U='URL'\nA=1", ""},
		{"dotenv: nothing", dotenv, "U", "U=\nA=1", "U=URL\nA=1", ""},
		{"dotenv: text of several lines", dotenv, "U", "A=\"x\nU=https://other\n\"\n#U=a\n", "A=\"x\nU=https://other\n\"\n#U=a\nU=URL\n", ""},
		{"dotenv: the last one counts", dotenv, "U", "U: https://a\nU: https://b\n", "U: https://a\nU: URL\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for name, e := range map[string]encoding.Encoding{
				"no mark": encoding.Nop, "UTF-8": unicode.UTF8BOM,
			} {
				in := func(text string) string {
					file, err := e.NewEncoder().String(text)
					must(t, err)
					return file
				}
				if c.text == "" && e != encoding.Nop {
					continue
				}
				change := Change{Path: strings.Split(c.path, "."), Value: url}
				got, err := c.format.apply([]byte(in(c.text)), &change)
				if want := in(strings.ReplaceAll(c.want, "URL", url)); err != nil || string(got) != want {
					t.Fatalf("%s: apply = %q, %v; want %q", name, got, err, want)
				}
				back, err := c.format.undo(got, &change)
				want := c.undone
				if want == "" {
					want = c.text
				}
				if err != nil || string(back) != in(want) {
					t.Errorf("%s: undo = %q, %v; want %q", name, back, err, in(want))
				}
			}
		})
	}
}

func TestFormat_Refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		format *format
		path   string
		text   string
		want   string
	}{
		{"json with a comment", strictJSON, "env.U", "{\n  // mine\n  \"a\": 1\n}", "line 2"},
		{"json with a trailing comma", strictJSON, "env.U", "{\"a\": 1,}", "ignores a file"},
		{"a parent that is a text", strictJSON, "env.U", `{"env": "x"}`, "not an object"},
		{"a value that is no text", strictJSON, "env.U", `{"env": {"U": 1}}`, "not a text"},
		{"an inline table", tomlFile, "p.U", "p = {a = 1}\n", "cannot be edited"},
		{"dotted keys", tomlFile, "p.x.U", "p.x.a = 1\n", "cannot be edited"},
		{"a flow mapping", yamlFile, "models.0.U", "models: [{name: a}]\n", "cannot be edited"},
		{"a folded text", yamlFile, "U", "U: >\n  a\n  b\n", "cannot be edited"},
		{"json: an array", strictJSON, "env.U", "[1]", "the file is not an object"},
		{"jsonc: an array", jsonC, "env.U", "[1] // mine\n", "the file is not an object"},
		{"json: null", strictJSON, "env.U", "null", "the file is not an object"},
		{"json: a parent that is null", strictJSON, "env.U", `{"env": null}`, "env is not an object"},
		{"json: a value that is null", strictJSON, "U", `{"U": null}`, "U is not a text"},
		{"yaml: a list", yamlFile, "U", "- a\n", "the file is not an object"},
		{"yaml: a text", yamlFile, "U", "a\n", "the file is not an object"},
		{"yaml: a flow mapping", yamlFile, "U", "{model: x}\n", "cannot be edited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			change := Change{Path: strings.Split(c.path, "."), Value: "http://x"}
			got, err := c.format.apply([]byte(c.text), &change)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("apply(%q) = %q, %v; want an error with %q", c.text, got, err, c.want)
			}
			_, isRead := c.format.decode([]byte(c.text))
			if remedy := "set " + c.path + " to http://x yourself"; err != nil && !strings.Contains(err.Error(), remedy) && isRead == nil {
				t.Errorf("apply(%q): got %v, want the remedy %q", c.text, err, remedy)
			}
		})
	}
}
