package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	// namesSetting matches a name in the form of a setting, with the characters around it.
	namesSetting = regexp.MustCompile(`(^|[^\w./$@-])([a-z]+\.[a-z]+(?:_[a-z]+)*)($|[^\w(/-])`)
	envName      = regexp.MustCompile(`GRAPHITI_PROXY_[A-Z_]+[A-Z]`)

	// fileEndings are extensions of file names, which resemble settings.
	fileEndings = []string{"db", "go", "html", "json", "jsonl", "log", "md", "sock", "yaml"}

	// ofTheSystem are files of control groups, which resemble settings.
	ofTheSystem = []string{"memory.max", "memory.limit_in_bytes"}

	// refused are settings that a message refuses or announces.
	refused = []string{"state.redis_url", "state.postgres_url", "ingest.max_turns", "ingest.max_bytes", "ingest.max_age", "ingest.max_batch"}
)

// TestNamedSettingsExist checks that every setting named in a text of the program, a page,
// a document or a deployment file exists. Otherwise readers could not follow its advice.
func TestNamedSettingsExist(t *testing.T) {
	known, groups, vars := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range new(Config).fields() {
		group, _, _ := strings.Cut(f.key, ".")
		known[f.key], groups[group], vars[f.env()] = true, true, true
		vars[f.env()+"_FILE"] = f.secret
	}
	named := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		texts, err := textsIn(path)
		for _, text := range texts {
			for line := range strings.Lines(text) {
				for _, name := range settingsIn(line) {
					group, rest, _ := strings.Cut(name, ".")
					if !groups[group] || slices.Contains(fileEndings, rest) || slices.Contains(ofTheSystem, name) || slices.Contains(refused, name) {
						continue
					}
					if named++; !known[name] {
						t.Errorf("%s: there is no setting %s: %s", path, name, strings.TrimSpace(line))
					}
				}
				for _, name := range envName.FindAllString(line, -1) {
					if named++; !vars[name] {
						t.Errorf("%s: no setting has the variable %s: %s", path, name, strings.TrimSpace(line))
					}
				}
			}
		}
		return err
	})
	if err != nil || named < 500 {
		t.Errorf("%d settings are named (%v), want some hundreds", named, err)
	}
}

// settingsIn returns the names in a line that have the form of a setting, including two
// with only one character between them.
func settingsIn(line string) (names []string) {
	for {
		m := namesSetting.FindStringSubmatchIndex(line)
		if m == nil {
			return names
		}
		names = append(names, line[m[4]:m[5]])
		line = line[m[5]:]
	}
}

// textsIn returns the texts of a file that people read: the strings of a program, or the
// whole file.
func textsIn(path string) (texts []string, err error) {
	switch filepath.Ext(path) {
	case ".md", ".html", ".yaml", ".yml":
		b, err := os.ReadFile(path)
		return []string{string(b)}, err
	case ".go":
	default:
		if strings.Contains(path, "/deploy/") {
			b, err := os.ReadFile(path)
			return []string{string(b)}, err
		}
		return nil, nil
	}
	if strings.HasSuffix(path, "_test.go") {
		return nil, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				texts = append(texts, s)
			}
		}
		return true
	})
	return texts, nil
}

// TestAges checks that ages of people, projects and kinds are read from a file, and in the
// same form or as pairs from a flag or the environment.
func TestAges(t *testing.T) {
	const ages = `{"github_repo:github.com/acme/app": 30d, "user:mira": hold, messages: 180d, work: 7d}`
	for name, load := range map[string]func() (*Config, error){
		"file":        func() (*Config, error) { return load(t, "memory:\n  retention: "+ages+"\n", nil, nil) },
		"environment": func() (*Config, error) { return load(t, "", []string{"GRAPHITI_PROXY_MEMORY_RETENTION=" + ages}, nil) },
		"flag":        func() (*Config, error) { return load(t, "", nil, map[string]string{"memory.retention": ages}) },
		"pairs": func() (*Config, error) {
			return load(t, "", nil, map[string]string{"memory.retention": "github_repo:github.com/acme/app=30d,user:mira=hold,messages=180d,work=7d"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := load()
			must(t, err)
			const day = 24 * time.Hour
			want := map[string]time.Duration{"github_repo:github.com/acme/app": 30 * day, "user:mira": HoldAge, "messages": 180 * day, "work": 7 * day}
			if ages := c.Ages(); !maps.Equal(ages, want) {
				t.Errorf("got %v, want %v", ages, want)
			}
		})
	}
}

// TestPerAddress checks that the default limit of connections per address is half of all
// connections in multi mode, and that single mode has no limit, because one person uses the
// proxy.
func TestPerAddress(t *testing.T) {
	for _, tc := range []struct {
		mode, set string
		want      int
	}{{"single", "0", 0}, {"multi", "0", 50}, {"multi", "100", 100}, {"single", "7", 7}} {
		c, err := Load(Sources{Flags: map[string]string{"identity.mode": tc.mode, "limits.connections": "100", "limits.connections_per_address": tc.set}})
		if err != nil || c.PerAddress() != tc.want {
			t.Errorf("%v: got %d clients of one address, %v; want %d", tc, c.PerAddress(), err, tc.want)
		}
	}
}

// TestNamedUpstreamWithoutItsVersion checks that the base URL of a named upstream is used
// without a final /v1, like a provider's, and that a note reports it.
func TestNamedUpstreamWithoutItsVersion(t *testing.T) {
	c, err := load(t, "upstreams:\n  groq: https://api.groq.com/openai/v1/\n  ollama: http://127.0.0.1:11434\n", nil, nil)
	if err != nil || c.Named["groq"] != "https://api.groq.com/openai" || c.Named["ollama"] != "http://127.0.0.1:11434" ||
		len(c.Notes()) != 1 || !strings.HasPrefix(c.Notes()[0], "upstreams.groq: ") {
		t.Errorf("got upstreams %+v, notes %q, %v; want one note, about upstreams.groq", c.Named, c.Notes(), err)
	}
}
