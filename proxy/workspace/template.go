package workspace

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pelletier/go-toml/v2"
	"github.com/tidwall/gjson"
)

// template is the text of a command file, which a client sends in place of the command.
type template struct {
	name   string
	pieces []string // the text between its placeholders
	args   []bool   // whether the placeholder after a piece stands for arguments
}

// minTemplate is the least number of words in a template: people also type fewer.
const minTemplate = 2

var (
	placeholder   = regexp.MustCompile("\\{\\{\\s*\\w+\\s*\\}\\}|\\$(?:ARGUMENTS(?:\\[\\d+\\])?|[@*]|\\d+)|!\\{[^}\n]*\\}|!`[^`\n]*`|@\\{[^}\n]*\\}")
	frontMatter   = regexp.MustCompile(`(?s)\A\s*---\r?\n.*?\n---\s*(\n|\z)`)
	commandFolder = regexp.MustCompile(`(?i)^(commands?|prompts?|workflows?|recipes?|skills?)$`)
)

// templatesIn returns the templates in a file, whose path is relative to the project.
func templatesIn(path []string, text []byte) (list []template) {
	file := path[len(path)-1]
	switch ext := strings.ToLower(filepath.Ext(file)); ext {
	case ".toml":
		var doc struct{ Prompt string }
		if toml.Unmarshal(text, &doc) == nil {
			list = append(list, newTemplate(commandName(path), doc.Prompt))
		}
	case ".json", ".jsonc":
		gjson.GetBytes(text, "command").ForEach(func(name, command gjson.Result) bool {
			list = append(list, newTemplate(name.Str, command.Get("template").Str))
			return true
		})
	default:
		list = append(list, newTemplate(commandName(path), string(frontMatter.ReplaceAll(text, nil))))
	}
	return slices.DeleteFunc(list, func(t template) bool { return len(strings.Fields(strings.Join(t.pieces, " "))) < minTemplate })
}

// commandName returns the name of the command in a file, as people type it.
func commandName(path []string) string {
	from, separator := len(path)-1, ":"
	for n, dir := range path[:len(path)-1] {
		if commandFolder.MatchString(dir) {
			from = n + 1
			break
		}
	}
	names := slices.Clone(path[from:])
	last := &names[len(names)-1]
	if *last = strings.TrimSuffix(*last, filepath.Ext(*last)); strings.EqualFold(*last, "SKILL") && len(names) > 1 {
		names = names[:len(names)-1]
	}
	if path[0] == ".opencode" {
		separator = "/"
	}
	return strings.Join(names, separator)
}

func newTemplate(name, text string) (t template) {
	t.name = name
	for from := 0; ; {
		at := placeholder.FindStringIndex(text[from:])
		if at == nil {
			t.pieces = append(t.pieces, text[from:])
			return t
		}
		t.pieces = append(t.pieces, text[from:from+at[0]])
		t.args = append(t.args, text[from+at[0]] == '$' || text[from+at[0]] == '{')
		from += at[1]
	}
}

// command returns the command that a client has replaced by a message, or "".
func (t *template) command(message string) string {
	rest, ok := afterWords(message, t.pieces[0])
	var args []string
	for n, piece := range t.pieces[1:] {
		if !ok {
			return ""
		}
		var filled string
		if filled, rest, ok = upTo(rest, piece); t.args[n] && !slices.Contains(args, filled) {
			args = append(args, filled)
		}
	}
	// Without a placeholder, clients put the arguments or the whole command behind a blank line.
	end := strings.TrimLeft(rest, " \t\r")
	switch behind := strings.TrimSpace(rest); {
	case !ok || behind != "" && !strings.HasPrefix(end, "\n"):
		return ""
	case strings.HasPrefix(behind, "/"+t.name):
		return behind
	case behind != "":
		args = append(args, behind)
	}
	return strings.TrimSpace("/" + t.name + " " + strings.Join(args, " "))
}

// afterWords returns the text after words at its beginning. Blanks may differ.
func afterWords(text, words string) (rest string, ok bool) {
	for word := range strings.FieldsSeq(words) {
		if text, ok = strings.CutPrefix(strings.TrimLeftFunc(text, unicode.IsSpace), word); !ok {
			return "", false
		}
	}
	return text, true
}

// upTo returns the text before words, and the rest after them.
func upTo(text, words string) (before, rest string, ok bool) {
	fields := strings.Fields(words)
	if len(fields) == 0 {
		return strings.TrimSpace(text), "", true
	}
	for from := 0; ; from++ {
		i := strings.Index(text[from:], fields[0])
		if i < 0 {
			return "", "", false
		}
		from += i
		if rest, ok = afterWords(text[from:], words); ok {
			return strings.TrimSpace(text[:from]), rest, true
		}
	}
}

// Words returns the command that a person typed if a message is the text of a command file in a
// repository; otherwise "". It waits for the file system at most for the given time.
func (c *Commands) Words(repo *Repo, message string, wait time.Duration) string {
	for _, dir := range repo.commandDirs() {
		found, _ := c.files(dir, wait)
		for i := range found.templates {
			if command := found.templates[i].command(message); command != "" {
				return command
			}
		}
	}
	return ""
}

// commandDirs returns the directories from which clients take the commands of a repository.
func (r *Repo) commandDirs() []string {
	if r.Dir == "" {
		return nil
	}
	return slices.Compact([]string{filepath.Clean(r.Dir), filepath.Clean(r.Root)})
}
