package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxMarked limits the marked lines per thousand. The figures may only fall: lower them
// after rewriting texts, and never raise one.
var maxMarked = map[string]int{"comments": 4, "comments of tests": 4, "texts": 4, "docs": 4, "heads of tables": 5, "names of tests": 5}

// marks match wordings that read as translated. They are signs, not errors: rewrite the
// sentence instead of replacing the word. Blanks in the patterns do not count.
var marks = wordings(`
	what\s+\w+ | who\s+is\s+(?:meant|it) | whose\s+(?:it|they|an?|each|all|memory|memories|own)\b | whose\s+\w+\s+(?:it|they)\s+(?:is|are)\b
	| nobody | somebody | everybody | anybody | stands? | stood
	| beside | behind\s+(?:it|them|that|those|its|their|what|whom|the\s+)
	| says?\s+(?:that|whether|how|why|which|where|who|of|it|nothing|none) | says\s+in\b
	| notes?\s+(?:which|whether|of\s+(?:each|turns|what)) | (?:is|are|was|were|been|be)\s+(?:said|noted|told|meant|spoken)
	| sp(?:eaks?|oke|oken)\s+of | as\s+\w+\s+says?
	| that\s+(?:is|was|are|were|has\s+been|have\s+been)\s+(?:found|said|kept|asked|meant|known|noted|named|over|theirs|ours|here|there)
	| those\s+(?:that|which) | (?:none|some|others?)\s+that | (?:is|are)\s+those
	| where\s+(?:it|they|there|nothing|none|no)\s+\w+
	| as\s+(?:it|they)\s+(?:came|comes?|stands?|was|were|stood|(?:is|are)\s+(?:\w+ed|said|sent|kept|shown|known|written))\b
	| of\s+(?:theirs|ours)\b | has\s+(?:it|them|none)\b
	| nothing\s+(?:is|are|was|of|that|may|has|new|more|in|stands)\b | none\s+(?:is|are|was|has|does)\b
	| (?:its|it|they|them|there):\s+(?:none|nothing)\b | no\s+one\s+(?:is|has|can)\b
	| it\s+is\s+(?:not\s+)?(?:known|certain|so|there|clear\s+that) | (?:is|are|was|were)\s+not\s+known | is\s+known\s+of | known\s+of
	| look(?:s|ed)?\s+(?:that|whether) | (?:is|are|was|were|be|been)\s+looked\s+(?:at|for) | (?:a|first|last|next|each|one|another)\s+look\b
	| (?:go|goes|went)\s+on\b | comes\s+to\s+(?:no|an?)\b | as\s+many\s+as | so\s+many\b | (?:is|are)\s+asked\b
	| (?:of|to)\s+which\s+(?:nothing|none|no|it|is|there) | by\s+which\s+\w+\s+(?:is|are) | (?:is|are)\s+to\s+be\s+\w+
	| (?:nil|empty|zero|0|none|false|true|no\s\w+):\s+(?:it|they|there|all|that|the\s\w+\s(?:is|are|does)|no|none|any|every|never|not)
	| ones?\s+that\s+(?:is|are|was|were|cannot|has|have|does|may|no)\b | which\s+of\s+(?:them|these|those|the\s+two)
	| (?:is|are|was|were)\s+of\s+(?:the|an?|this|that|one|another|no|its|their|other)\b
	| (?:that|which)\s+(?:it|they)\s+(?:says?|lacks?|knows?|tells?)\b | belongs?\s+to\s+(?:it|them|none|another)\b
	| (?:may|must|can|could|might)\s+(?:still\s+)?be\s+there | whatever\s+(?:is|it|they|the|else|may) | the\s+(?:newest|latest)\s+that
	| (?:is|are|was|were)\s+(?:there|here)\s*_
`)

// exceptions match uses of the same words that are plain English.
var exceptions = wordings(`
	what\s+(?:if|about|happens|happened|to|we|you|kinds?|would)
	| (?:stands?|stood)\s+(?:for|up|alone|out|down) | if\s(?:nothing|none) | look\s+and\w* | to\s+be\s+used
	| behind\s+the\s+(?:(?:proxy|scenes|firewall|load|tunnel|reverse)\w*|nat)
	| of\s+(?:the|an?|this|that|one|another|no|its|their|other)\s+(?:form|type|kind)\w*
	| where\s+(?:it|they|there|nothing|none|no)\s+goes
`)

var (
	hyphenated  = regexp.MustCompile(`(?i)-(?:stands?|stood)\b|\b(?:stands?|stood)-`)
	thereAtEnd  = regexp.MustCompile(`(?i)\b((?:is|are|was|were)\s+(?:there|here)\s*)[,.;:)]`)
	goComment   = regexp.MustCompile(`(?:^|\s)//\s?(.*)`)
	goText      = regexp.MustCompile(`^"((?:[^"\\]|\\.){25,})"`)
	mapKeyEnd   = regexp.MustCompile(`^\s*:`)
	inlineCode  = regexp.MustCompile("`[^`]*`")
	testName    = regexp.MustCompile(`^func (?:Test|Benchmark|Fuzz|Example)(\w+)\(`)
	wordStart   = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])|_`)
	notComments = regexp.MustCompile(`^(?:go:|nolint|\+build)`)
	notTexts    = regexp.MustCompile(`^(?:SELECT|INSERT|CREATE|DELETE|UPDATE)`)
)

func wordings(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(strings.Fields(pattern), "") + `)\b`)
}

// isMarked reports whether a mark begins in the first n bytes of a text.
func isMarked(text string, n int) bool {
	blank := func(s string) string { return strings.Repeat("_", len(s)) }
	text = exceptions.ReplaceAllStringFunc(hyphenated.ReplaceAllStringFunc(text, blank), blank)
	text = thereAtEnd.ReplaceAllString(text, "${1}_")
	at := marks.FindStringIndex(text)
	return at != nil && at[0] < n
}

// prose is a line for human readers.
type prose struct {
	kind, text string
	line       int
}

// proseOf returns the comments, texts and names of tests of a Go file, the lines of a document,
// or the comments of a table.
func proseOf(file string, content []byte) (found []prose) {
	fenced := false
	for n, line := range strings.Split(string(content), "\n") {
		trimmed := strings.TrimSpace(line)
		if path.Ext(file) == ".txt" {
			if strings.HasPrefix(file, helpFolder) {
				found = append(found, prose{"texts", trimmed, n})
			} else if strings.HasPrefix(trimmed, "#") {
				found = append(found, prose{"heads of tables", trimmed, n})
			}
			continue
		}
		if path.Ext(file) == ".md" {
			if strings.HasPrefix(trimmed, "```") {
				fenced = !fenced
			} else if !fenced && trimmed != "" && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "| ---") {
				found = append(found, prose{"docs", inlineCode.ReplaceAllString(trimmed, "`x`"), n})
			}
			continue
		}
		if m := testName.FindStringSubmatch(line); m != nil {
			found = append(found, prose{"names", wordStart.ReplaceAllString(m[1], "$1$3 $2$4"), n})
			continue
		}
		if m := goComment.FindStringSubmatch(line); m != nil {
			if !notComments.MatchString(m[1]) {
				found = append(found, prose{"comments", strings.TrimSpace(m[1]), n})
			}
			continue
		}
		for _, text := range textsOf(line) {
			found = append(found, prose{"texts", text, n})
		}
	}
	return found
}

// textsOf returns the string literals of a line that are sentences for people: logs,
// errors and help.
func textsOf(line string) (texts []string) {
	for i := 0; i < len(line); i++ {
		m := goText.FindStringSubmatch(line[i:])
		if m == nil || mapKeyEnd.MatchString(line[i+len(m[0]):]) {
			continue
		}
		if strings.Contains(m[1], " ") && !notTexts.MatchString(m[1]) {
			texts = append(texts, m[1])
		}
		i += len(m[0]) - 1
	}
	return texts
}

// helpFolder has the help texts.
const helpFolder = "cmd/graphiti-proxy/help/"

// measured reports whether a file's language counts.
func measured(file string) bool {
	return slices.Contains([]string{".go", ".md", ".txt"}, path.Ext(file)) &&
		!strings.Contains(file, "testdata/") && !strings.Contains(file, "/images/") && file != "docs/settings.md"
}

func TestPlainEnglish(t *testing.T) {
	root := filepath.Join("..", "..")
	total, marked := make(map[string]int), make(map[string]int)
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != "." && (strings.HasPrefix(name, ".") || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !measured(file) {
			return nil
		}
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		all := proseOf(file, content)
		for i, p := range all {
			text := p.text
			if next := i + 1; p.kind == "comments" && next < len(all) && all[next].kind == p.kind && all[next].line == p.line+1 {
				text += " " + all[next].text // a mark may end on the next line
			}
			kind := p.kind
			if strings.HasSuffix(file, "_test.go") {
				kind += " of tests"
			}
			total[kind]++
			if isMarked(text, len(p.text)) {
				marked[kind]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read the tree: %v", err)
	}
	for kind, limit := range maxMarked { // tests quote messages, so their texts are free
		got := 1000 * marked[kind] / max(total[kind], 1)
		t.Logf("%s: %d of %d lines are marked", kind, marked[kind], total[kind])
		if total[kind] == 0 || got > limit {
			t.Errorf("%s: got %d marked lines per thousand of %d, want at most %d", kind, got, total[kind], limit)
		}
	}
}
