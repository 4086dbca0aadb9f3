package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/graphiti-proxy/graphiti-proxy/"

// mayImport lists the packages of this module that each package may import; tests may
// import more. cmd/graphiti-proxy may import every package in the table. A folder of
// internal/dialect that is missing here implements an API, and may import dialect.
var mayImport = map[string][]string{
	"bench":                       {"cache/database", "cache/postgres", "capture/ledger", "graphiti", "graphiti/embedded", "graphiti/graphititest", "inject", "inject/proof", "internal/sentence"},
	"cache":                       {"cache/database", "cache/postgres", "cache/sqlite", "graphiti", "inject", "inject/proof", "internal/memo"},
	"cache/database":              {},
	"cache/postgres":              {"cache/database"},
	"cache/postgres/postgrestest": {},
	"cache/sqlite":                {"cache/database"},
	"capture":                     {"cache/database", "cache/sqlite", "capture/deliver", "capture/ledger", "capture/redact", "graphiti", "graphiti/words", "internal/dialect"},
	"capture/deliver":             {"capture/ledger", "graphiti"},
	"capture/distil":              {"graphiti", "graphiti/words"},
	"capture/ledger":              {"cache/database", "cache/sqlite", "graphiti"},
	"capture/redact":              {},
	"capture/response":            {"internal/budget", "internal/dialect"},
	"capture/standing":            {"cache", "capture", "capture/ledger", "graphiti", "graphiti/card", "graphiti/words", "inject"},
	"cmd/internal/cli":            {"cache/database", "cache/sqlite", "capture/ledger", "config", "graphiti", "graphiti/embedded", "graphiti/mcp", "graphiti/remote", "graphiti/rest", "internal/datadir", "internal/dialect/registry", "internal/sentence", "internal/service", "internal/terminal", "proxy/admin", "proxy/identity", "proxy/wire"},
	"config":                      {},
	"deploy/release":              {},
	"graphiti":                    {},
	"graphiti/card":               {"capture/ledger", "graphiti", "graphiti/words"},
	"graphiti/embedded":           {"cache/database", "cache/sqlite", "capture/ledger", "graphiti", "graphiti/words", "internal/budget", "internal/memo", "internal/sentence"},
	"graphiti/graphititest":       {},
	"graphiti/mcp":                {"graphiti", "graphiti/remote", "graphiti/words"},
	"graphiti/remote":             {"graphiti"},
	"graphiti/rest":               {"graphiti", "graphiti/remote"},
	"graphiti/words":              {},
	"inject":                      {"graphiti", "graphiti/words", "inject/proof", "internal/dialect"},
	"inject/proof":                {"graphiti/words"},
	"internal/budget":             {},
	"internal/connect":            {"internal/datadir", "internal/dialect"},
	"internal/datadir":            {"cache/database", "cache/sqlite"},
	"internal/dialect":            {},
	"internal/dialect/registry":   {"internal/dialect", "internal/dialect/*"},
	"internal/health":             {"cache/database", "cache/sqlite", "capture", "capture/distil", "graphiti", "internal/terminal"},
	"internal/inspector":          {"capture", "capture/ledger", "graphiti", "graphiti/card", "inject", "internal/health", "internal/service", "internal/transcripts"},
	"internal/mcpserver":          {"graphiti", "graphiti/card", "graphiti/words", "internal/service"},
	"internal/memo":               {"internal/dialect"},
	"internal/helptest":           {},
	"internal/sentence":           {},
	"internal/service":            {"cache", "cache/sqlite", "capture", "capture/ledger", "capture/standing", "graphiti", "graphiti/card", "graphiti/embedded", "graphiti/words", "inject", "inject/proof", "internal/health", "internal/terminal", "proxy/identity"},
	"internal/servicetest":        {"cache", "capture", "capture/ledger", "capture/standing", "graphiti", "graphiti/card", "graphiti/embedded", "inject", "internal/dialect", "internal/dialect/chat", "internal/health", "internal/helptest", "internal/service", "proxy/identity"},
	"internal/telemetry":          {"capture", "capture/deliver", "graphiti", "internal/terminal"},
	"internal/terminal":           {"graphiti/words"},
	"internal/transcripts":        {"internal/dialect", "internal/dialect/chat", "internal/service"},
	"proxy":                       {"capture", "capture/ledger", "capture/response", "capture/standing", "graphiti", "graphiti/words", "inject", "internal/budget", "internal/dialect", "internal/dialect/registry", "internal/dialect/responses", "internal/memo", "proxy/identity", "proxy/observe", "proxy/wire", "proxy/workspace"},
	"proxy/admin":                 {"internal/health", "internal/inspector", "internal/mcpserver", "internal/service", "proxy/wire"},
	"proxy/identity":              {"graphiti", "internal/dialect", "internal/dialect/registry", "proxy/workspace"},
	"proxy/observe":               {"graphiti", "inject", "internal/dialect", "internal/dialect/registry", "proxy/wire"},
	"proxy/proxytest":             {},
	"proxy/wire":                  {"internal/budget"},
	"proxy/workspace":             {"graphiti", "internal/datadir"},
}

// Limits above which a function or the module is too large, or a name means too much. Tests may be
// longer.
const (
	maxFunctionLines = 70
	maxSameName      = 2
	maxPackages      = 54 // lower it when a package is removed

	// maxProductLines only falls: a change that adds a mechanism removes the one that it
	// replaces. Lower the limit to the next hundred after each change that removes more.
	maxProductLines = 77_805
)

// source is one Go file of the tree.
type source struct {
	path string // relative to the root, with slashes
	pkg  string // its folder
	test bool
	text []byte
	file *ast.File
	set  *token.FileSet
}

// lineOf returns the line on which a node begins.
func (s *source) lineOf(n ast.Node) int { return s.set.Position(n.Pos()).Line }

// readTree parses every Go file of the module.
func readTree(t *testing.T) (tree []*source) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		s := &source{path: name, pkg: filepath.ToSlash(filepath.Dir(name)), test: strings.HasSuffix(name, "_test.go"), set: token.NewFileSet()}
		if s.text, err = os.ReadFile(path); err != nil {
			return err
		}
		if s.file, err = parser.ParseFile(s.set, path, s.text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		tree = append(tree, s)
		return nil
	})
	must(t, err)
	return tree
}

// TestLayout checks that the tree follows docs/adr/0001-layout-and-mechanisms.md.
func TestLayout(t *testing.T) {
	t.Parallel()
	tree := readTree(t)
	for _, rule := range []struct {
		name       string
		exceptions map[string]string // reasons by name
		check      func(tree []*source, breaks func(what, format string, args ...any))
	}{
		{"imports follow the table", nil, checkImports},
		{"a package has a comment", nil, checkComments},
		{"a function fits a screen", longFunctions, checkFunctions},
		{"a name means one thing", sameNames, checkNames},
		{"a question changes nothing", nil, checkQuestions},
		{"a test does not sleep", sleepingTests, checkSleeps},
		{"there are few packages", nil, checkPackages},
		{"the product does not grow", nil, checkSize},
	} {
		t.Run(rule.name, func(t *testing.T) {
			used := make(map[string]bool)
			rule.check(tree, func(what, format string, args ...any) {
				if used[what] = true; rule.exceptions[what] == "" {
					t.Errorf(what+" "+format, args...)
				}
			})
			for what := range rule.exceptions {
				if !used[what] {
					t.Errorf("%s needs no exception any more: delete it", what)
				}
			}
		})
	}
}

func checkImports(tree []*source, breaks func(what, format string, args ...any)) {
	for _, s := range tree {
		if s.test || s.pkg == "internal/e2e" {
			continue
		}
		allowed, known := mayImport[s.pkg]
		if !known && strings.HasPrefix(s.pkg, "internal/dialect/") {
			allowed, known = []string{"internal/dialect"}, true
		}
		if s.pkg == "cmd/graphiti-proxy" {
			allowed, known = slices.Sorted(maps.Keys(mayImport)), true
		}
		if !known {
			breaks(s.pkg, "is a package that the table mayImport does not have")
		}
		for _, imp := range s.file.Imports {
			if of, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module); ours && !slices.Contains(allowed, of) && !slices.Contains(allowed, path.Dir(of)+"/*") {
				breaks(s.path, "imports %s", of)
			}
		}
	}
}

// checkComments requires a package comment. The table of imports states the boundaries.
func checkComments(tree []*source, breaks func(what, format string, args ...any)) {
	comments := make(map[string]string)
	for _, s := range tree {
		if !s.test {
			comments[s.pkg] += s.file.Doc.Text()
		}
	}
	for pkg, comment := range comments {
		if comment == "" {
			breaks(pkg, "has no package comment")
		}
	}
}

// checkPackages limits the number of packages. Packages with only tests do not count.
func checkPackages(tree []*source, breaks func(what, format string, args ...any)) {
	packages := make(map[string]bool)
	for _, s := range tree {
		if !s.test {
			packages[s.pkg] = true
		}
	}
	if len(packages) > maxPackages {
		breaks("the module", "has %d packages; %d are the most", len(packages), maxPackages)
	}
}

// checkSize limits the number of lines of the product: all lines of Go files that are neither
// tests, stand-ins for tests, benchmarks nor generated.
func checkSize(tree []*source, breaks func(what, format string, args ...any)) {
	lines := 0
	for _, s := range tree {
		if standIn := strings.HasSuffix(s.pkg, "test"); !s.test && !standIn && s.pkg != "bench" && !ast.IsGenerated(s.file) {
			lines += bytes.Count(s.text, []byte{'\n'})
		}
	}
	if lines > maxProductLines {
		breaks("the product", "has %d lines; %d are the most", lines, maxProductLines)
	}
}

// checkFunctions limits the number of lines from the first brace of a function to its last.
func checkFunctions(tree []*source, breaks func(what, format string, args ...any)) {
	for _, s := range tree {
		if s.test || ast.IsGenerated(s.file) {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if n := s.set.Position(f.End()).Line - s.lineOf(f.Body) + 1; n > maxFunctionLines {
				breaks(s.path+":"+nameOf(f), "has %d lines; %d are the most", n, maxFunctionLines)
			}
		}
	}
}

// nameOf returns the name of a function in the tables of exceptions, without its file.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// checkNames limits the number of packages with an exported type of the same name, because a reader
// confuses such types.
func checkNames(tree []*source, breaks func(what, format string, args ...any)) {
	in := make(map[string]map[string]bool) // packages by name
	for _, s := range tree {
		if s.test || strings.HasSuffix(s.pkg, "test") || s.pkg == "bench" {
			continue
		}
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				name := spec.(*ast.TypeSpec).Name.Name //nolint:forcetypeassert // of a declaration of types
				if in[name] == nil {
					in[name] = make(map[string]bool)
				}
				in[name][s.pkg] = ast.IsExported(name)
			}
		}
	}
	for name, packages := range in {
		if ast.IsExported(name) && len(packages) > maxSameName {
			breaks(name, "is a type of %v; %d packages are the most", slices.Sorted(maps.Keys(packages)), maxSameName)
		}
	}
}

// questionName matches the name of a function that answers a question.
var questionName = regexp.MustCompile(`^(?i:is|has|may|can|should|was|were|are|does|needs|must|wants|asks|holds|fits|matches|covers|known|same)(\p{Lu}|$)`)

// checkQuestions reports functions that answer a question with true or false, and also change
// something that the caller sees.
func checkQuestions(tree []*source, breaks func(what, format string, args ...any)) {
	for _, s := range tree {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.test || f.Body == nil || !questionName.MatchString(f.Name.Name) || f.Type.Results.NumFields() != 1 {
				continue
			}
			if result, ok := f.Type.Results.List[0].Type.(*ast.Ident); !ok || result.Name != "bool" {
				continue
			}
			changes := func(e ast.Expr) {
				if _, local := e.(*ast.Ident); !local && isOfCaller(f, e) {
					breaks(s.path+":"+nameOf(f), "is a question, and changes something in line %d", s.lineOf(e))
				}
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.IncDecStmt:
					changes(n.X)
				case *ast.AssignStmt:
					for _, to := range n.Lhs {
						changes(to)
					}
				}
				return true
			})
		}
	}
}

// isOfCaller reports whether an expression is a part of a function's receiver or parameters.
func isOfCaller(f *ast.FuncDecl, e ast.Expr) bool {
	for {
		switch of := e.(type) {
		case *ast.SelectorExpr:
			e = of.X
		case *ast.IndexExpr:
			e = of.X
		case *ast.StarExpr:
			e = of.X
		case *ast.Ident:
			lists := []*ast.FieldList{f.Type.Params}
			if f.Recv != nil {
				lists = append(lists, f.Recv)
			}
			return slices.ContainsFunc(lists, func(l *ast.FieldList) bool {
				return slices.ContainsFunc(l.List, func(p *ast.Field) bool {
					return slices.ContainsFunc(p.Names, func(name *ast.Ident) bool { return name.Name == of.Name })
				})
			})
		default:
			return false
		}
	}
}

// checkSleeps reports calls of time.Sleep in tests. Time in a synctest bubble is not real,
// so code in a call of synctest.Test, or of a helper that calls it, may sleep.
func checkSleeps(tree []*source, breaks func(what, format string, args ...any)) {
	bubbles := bubbleHelpers(tree)
	for _, s := range tree {
		if !s.test {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				switch {
				case !ok:
				case isCall(call, "synctest", "Test"), bubbles[s.pkg+"."+calledName(call)]:
					return false
				case isCall(call, "time", "Sleep"):
					breaks(s.path+":"+nameOf(f), "sleeps in line %d; wait for a condition, or test in a bubble of synctest", s.lineOf(call))
				}
				return true
			})
		}
	}
}

// bubbleHelpers returns the helpers of tests that call synctest.Test, as "package.name".
func bubbleHelpers(tree []*source) map[string]bool {
	helpers := make(map[string]bool)
	for _, s := range tree {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !s.test || strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && isCall(call, "synctest", "Test") {
					helpers[s.pkg+"."+f.Name.Name] = true
				}
				return true
			})
		}
	}
	return helpers
}

// calledName returns the name of a function called without a package, or "".
func calledName(c *ast.CallExpr) string {
	if f, ok := c.Fun.(*ast.Ident); ok {
		return f.Name
	}
	return ""
}

func isCall(c *ast.CallExpr, pkg, name string) bool {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// TestBinaryHoldsNoTestCode checks that the binary links neither testing nor the fakes.
func TestBinaryHoldsNoTestCode(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	for _, line := range strings.Fields(string(out)) {
		if line == "testing" || line == module+"graphiti/graphititest" || line == module+"proxy/proxytest" {
			t.Errorf("%s is linked in", line)
		}
	}
}
