package workspace

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/clipperhouse/uax29/v2/sentences"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	// commandsFresh is the time after which the files of a directory are read again.
	commandsFresh = 10 * time.Second

	maxCommandDirs  = 256 // cached directories
	maxCommandFiles = 2048
	maxCommandFile  = 1 << 20 // bytes
	maxCommandBytes = 4 << 20 // of all files of a directory
	maxCommandDepth = 12      // below the project's directory

	// likeCommand is the share of a message's words in a paragraph of a file from which the message
	// may be that paragraph, with arguments for its placeholders.
	likeCommand    = 0.7
	minCommandWord = 3 // bytes of a word
)

// Commands checks whether a message may be the content of a command, prompt or skill file of a
// repository. Several clients send such a file as if the person had typed it. The zero value is
// ready to use. It is safe for concurrent use.
type Commands struct {
	once  sync.Once // sets reads
	reads *reads[commandTexts]
}

// commandTexts has the paragraphs of files in lower case.
type commandTexts struct {
	paragraphs []string
	templates  []template
	files      int
	dirs       int
	left       int  // bytes that may be read
	more       bool // some are missing: they exceed a limit
}

// Hold reports whether a message may be the content of a repository's command file: it has several
// sentences and there is such a file, or a paragraph of one has its words. It also returns true if
// the files are many, or the file system does not answer within wait.
func (c *Commands) Hold(repo *Repo, message string, wait time.Duration) bool {
	return slices.ContainsFunc(repo.commandDirs(), func(dir string) bool { return c.hold(dir, message, wait) })
}

func (c *Commands) hold(dir, message string, wait time.Duration) bool {
	found, ok := c.files(dir, wait)
	if !ok || found.more {
		return true
	}
	if found.files == 0 {
		return false
	}
	message = strings.TrimSpace(message)
	if first := sentences.FromString(message); first.Next() && first.End() < len(message) {
		return true
	}
	words := strings.FieldsFunc(strings.ToLower(message), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) })
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < minCommandWord })
	return slices.ContainsFunc(found.paragraphs, func(p string) bool {
		n := 0
		for _, w := range words {
			if strings.Contains(p, w) {
				n++
			}
		}
		return float64(n) >= likeCommand*float64(len(words))
	})
}

// files returns the texts of a directory's files. ok is false if they were never read.
func (c *Commands) files(dir string, wait time.Duration) (found commandTexts, ok bool) {
	c.once.Do(func() { c.reads = newReads(readCommands, commandsFresh, maxCommandDirs) })
	return c.reads.find(dir, wait)
}

func readCommands(dir string) commandTexts {
	found := commandTexts{left: maxCommandBytes}
	found.readDir(dir, nil)
	return found
}

// notCommands are the directories of tools with many files, of which no client takes commands.
var notCommands = strings.Fields(".git .hg .svn .venv .tox .nox .cache .next .nuxt .gradle .idea .terraform .yarn .mypy_cache .pytest_cache .ruff_cache .direnv .parcel-cache .dart_tool")

var (
	commandNames = regexp.MustCompile(`(?i)command|prompt|recipe|skill|agent|opencode`)
	commandFile  = regexp.MustCompile(`(?i)\.(md|mdc|toml|prompt)$`)
	commandData  = regexp.MustCompile(`(?i)\.(ya?ml|jsonc?|txt)$`)
)

// readDir reads the files that may be commands: those of text in directories with a leading dot,
// and those of text or data with a name such as "prompts" in their path. Git keeps links, so it
// follows them.
func (t *commandTexts) readDir(dir string, path []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := e.Name()
		names, full := append(slices.Clone(path), name), filepath.Join(dir, name)
		dotted := strings.HasPrefix(names[0], ".") && names[0] != ".github"
		named := slices.ContainsFunc(names, commandNames.MatchString)
		info, err := os.Stat(full)
		switch {
		case t.more || err != nil:
		case info.IsDir() && (slices.Contains(notCommands, name) || len(path) == 0 && !strings.HasPrefix(name, ".") && !named):
		case info.IsDir():
			t.dirs++ // links may form circles
			if t.more = len(names) > maxCommandDepth || t.dirs > maxCommandFiles; !t.more {
				t.readDir(full, names)
			}
		case info.Mode().IsRegular() && (commandFile.MatchString(name) && len(path) > 0 && dotted || named && (commandFile.MatchString(name) || commandData.MatchString(name))):
			t.readFile(full, names)
		}
	}
}

var escaped = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|n)`)

// readFile adds the paragraphs and templates of a file, whose path in the project has these names.
func (t *commandTexts) readFile(path string, names []string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(transform.NewReader(f, utf.BOMOverride(transform.Nop)), maxCommandFile+1))
	t.files, t.left = t.files+1, t.left-len(b)
	if t.more = len(b) > maxCommandFile || t.left < 0 || t.files > maxCommandFiles; t.more {
		return
	}
	t.templates = append(t.templates, templatesIn(names, b)...)
	text := escaped.ReplaceAllStringFunc(string(b), func(e string) string {
		plain, err := strconv.Unquote(`"` + e + `"`)
		if err != nil {
			return e
		}
		return plain
	})
	for p := range strings.SplitSeq(strings.ReplaceAll(strings.ToLower(text), "\r", ""), "\n\n") {
		t.paragraphs = append(t.paragraphs, p)
	}
}
