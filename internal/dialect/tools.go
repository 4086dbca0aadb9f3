package dialect

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"
)

// WorksOnFiles reports whether a tool that the request offers runs commands or writes
// files, judged by the names and parameters of the tools. It reads the body again.
func (c *Conversation) WorksOnFiles() bool {
	if !c.Tools {
		return false
	}
	doc := Document(c.body)
	return worksOnFiles(doc.Get("tools")) || worksOnFiles(doc.Get(`input.#(type=="additional_tools")#.tools`))
}

// worksOnFiles is WorksOnFiles for a tool, or a list of tools.
func worksOnFiles(tool gjson.Result) (works bool) {
	if tool.IsArray() {
		tool.ForEach(func(_, one gjson.Result) bool {
			works = worksOnFiles(one)
			return !works
		})
		return works
	}
	for _, list := range []string{"tools", "functionDeclarations", "function_declarations"} {
		if more := tool.Get(list); more.IsArray() && worksOnFiles(more) {
			return true
		}
	}
	if f := tool.Get("function"); f.IsObject() {
		tool = f
	}
	name, kind := tool.Get("name").String(), tool.Get("type").String()
	for _, schema := range []string{"parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"} {
		if properties := tool.Get(schema + ".properties"); properties.IsObject() {
			return shapeWorks(name, properties)
		}
	}
	// The providers' own tools, and those with free text, have no parameters.
	hosted := strings.HasPrefix(tool.Get("environment.type").String(), "container")
	return !hosted && slices.ContainsFunc(builtIn, func(s string) bool { return strings.HasPrefix(kind, s) || kind == "custom" && name == s })
}

// builtIn lists the prefixes of providers' tool types that clients run on files.
var builtIn = []string{"bash_", "text_editor_", "local_shell", "shell", "apply_patch"}

// Words in the names of tools and of their parameters, by purpose.
var (
	listWords    = []string{"todos", "todo", "checklist", "plan"}
	commandNames = []string{"command", "cmd", "commands", "command line"}
	taskNames    = []string{"prompt", "task", "message", "goal", "objective"}
	pathWords    = []string{"path", "paths", "file", "files", "filename", "filepath", "notebook"}
	contentWords = []string{"content", "contents", "text", "string", "str", "edit", "edits", "replacement", "replacements", "diff", "patch", "source"}
	writeWords   = []string{"write", "create", "edit", "delete", "remove", "move", "rename", "replace", "insert", "append", "patch", "copy", "mkdir"}
)

// shapeWorks reports whether a tool with these parameters runs commands or writes
// files.
func shapeWorks(name string, properties gjson.Result) bool {
	var names, words []string
	properties.ForEach(func(key, value gjson.Result) bool {
		split := wordsOf(key.String())
		names, words = append(names, strings.Join(split, " ")), append(words, split...)
		// Some tools take a list of files, with an edit for each.
		value.Get("items.properties").ForEach(func(key, _ gjson.Result) bool {
			words = append(words, wordsOf(key.String())...)
			return true
		})
		return true
	})
	has := func(in, any []string) bool {
		return slices.ContainsFunc(in, func(w string) bool { return slices.Contains(any, w) })
	}
	own := wordsOf(name)
	switch {
	case has(names, listWords):
		return false
	case has(names, commandNames):
		isTask := has(names, taskNames) && slices.Contains(append(own, words...), "agent")
		return !isTask && !slices.Contains(words, "subagent")
	case has(words, pathWords):
		return has(words, contentWords) || has(own, writeWords)
	}
	return slices.Contains(own, "patch") && has(words, append(contentWords, "input"))
}

// wordsOf splits a name at case, underscores and the like, in lower case.
func wordsOf(name string) (words []string) {
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words, word = append(words, string(word)), nil
		}
	}
	upper := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			flush()
		case unicode.IsUpper(r) && !upper:
			flush()
			fallthrough
		default:
			word = append(word, unicode.ToLower(r))
		}
		upper = unicode.IsUpper(r)
	}
	flush()
	return words
}
