package dialect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Action is the purpose of a tool call: commands, a change of files, or a list of tasks. It is
// empty for calls that only read, and for unknown ones.
type Action struct {
	Commands []string
	Changed  []string
	Tasks    []Task
	IsList   bool // Tasks replaces the earlier list
}

// Task is a point of an agent's list.
type Task struct {
	Text string `json:"text"`
	Done bool   `json:"done,omitempty"`
}

const (
	maxItems   = 16 // commands, files or tasks of a call
	maxFile    = 512
	maxMembers = 64 // arguments of a call
)

// Words in the names of tools and of their arguments, by purpose. No table of clients: tools of
// unknown clients have the same words.
var (
	listWords      = []string{"todos", "todo", "checklist", "plan"}
	commandNames   = []string{"command", "cmd", "commands", "command line"}
	taskNames      = []string{"prompt", "task", "message", "goal", "objective"}
	pathWords      = []string{"path", "paths", "file", "files", "filename", "filepath", "notebook"}
	contentWords   = []string{"content", "contents", "text", "string", "str", "edit", "edits", "replacement", "replacements", "diff", "patch", "source"}
	writeWords     = []string{"write", "create", "edit", "delete", "remove", "move", "rename", "replace", "insert", "append", "patch", "copy", "mkdir"}
	directoryNames = []string{"cwd", "workdir", "working directory", "dir path", "directory"}
	editorVerbs    = []string{"view", "create", "str_replace", "insert", "undo_edit", "delete", "rename"}
)

// argument is one member of a call's arguments.
type argument struct {
	name  string // its words, joined by spaces
	words []string
	value gjson.Result
}

// Action returns the purpose of a call, by the names of its arguments. The first rule that fits decides.
func (c *Call) Action() Action {
	if isPatch(c.Arguments) {
		return Action{Changed: PatchedFiles(c.Arguments)}
	}
	args := argumentsOf(gjson.Parse(c.Arguments))
	find := func(names []string) (gjson.Result, bool) {
		i := slices.IndexFunc(args, func(a argument) bool { return slices.Contains(names, a.name) })
		if i < 0 {
			return gjson.Result{}, false
		}
		return args[i].value, true
	}
	files := pathsIn(args)
	_, isTask := find(taskNames)
	if tasks, ok := find(listWords); ok && (tasks.IsArray() || tasks.Type == gjson.String) {
		return Action{Tasks: tasksIn(tasks), IsList: true}
	}
	if run, ok := find(commandNames); ok {
		switch isVerb := slices.Contains(editorVerbs, run.Str); {
		case isVerb && files != nil && run.Str == "view":
			return Action{}
		case isVerb && files != nil:
			return Action{Changed: files}
		case !isTask:
			return Action{Commands: textsOf(run)}
		}
	}
	for _, a := range args {
		if a.value.Type == gjson.String && isPatch(a.value.Str) {
			return Action{Changed: PatchedFiles(a.value.Str)}
		}
	}
	writes := overlap(wordsOf(c.Name), writeWords) || slices.ContainsFunc(args, func(a argument) bool { return overlap(a.words, contentWords) })
	if writes && !isTask {
		return Action{Changed: files}
	}
	return Action{}
}

// argumentsOf returns the members of an object, and of the objects in its lists and objects.
func argumentsOf(v gjson.Result) (args []argument) {
	v.ForEach(func(key, v gjson.Result) bool {
		split := wordsOf(key.Str)
		args = append(args, argument{strings.Join(split, " "), split, v})
		if v.IsObject() {
			args = append(args, argumentsOf(v)...)
		} else if first := v.Get("0"); v.IsArray() && first.IsObject() && !slices.Contains(listWords, strings.Join(split, " ")) {
			v.ForEach(func(_, item gjson.Result) bool {
				args = append(args, argumentsOf(item)...)
				return len(args) < maxMembers
			})
		}
		return len(args) < maxMembers
	})
	return args
}

// pathsIn returns the values of arguments named after files.
func pathsIn(args []argument) (files []string) {
	for _, a := range args {
		isPath := overlap(a.words, pathWords) && (!overlap(a.words, contentWords) || slices.Contains(pathWords, a.words[len(a.words)-1]))
		if !isPath || slices.Contains(directoryNames, a.name) {
			continue
		}
		for _, f := range textsOf(a.value) {
			if f != "" && len(f) <= maxFile && !strings.ContainsAny(f, "\n\r") && !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	return files
}

// textsOf returns a text, or the texts of a list. A list of a program and its arguments is
// one command.
func textsOf(v gjson.Result) (texts []string) {
	if !v.IsArray() {
		if v.Type == gjson.String {
			texts = append(texts, v.Str)
		}
		return texts
	}
	v.ForEach(func(_, v gjson.Result) bool {
		if v.Type == gjson.String {
			texts = append(texts, v.Str)
		} else if c := v.Get("command"); c.Type == gjson.String {
			texts = append(texts, c.Str)
		}
		return len(texts) < maxItems
	})
	switch {
	case len(texts) == 3 && strings.HasSuffix(texts[0], "sh") && strings.HasPrefix(texts[1], "-"): // bash -lc "make"
		return texts[2:]
	case len(texts) > 1 && strings.HasPrefix(texts[1], "-"):
		return []string{strings.Join(texts, " ")}
	}
	return texts
}

func isPatch(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "*** Begin Patch") }

// PatchedFiles returns the files of a patch in the form of apply_patch.
func PatchedFiles(patch string) (files []string) {
	for line := range strings.Lines(patch) {
		for _, head := range []string{"*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "} {
			if f, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok && len(files) < maxItems {
				files = append(files, f)
			}
		}
	}
	return files
}

// tasksIn reads a list of tasks: objects with a text and a state, or a text with check marks.
func tasksIn(v gjson.Result) (tasks []Task) {
	add := func(text string, done bool) {
		if text = strings.TrimSpace(text); text != "" && len(tasks) < maxItems {
			tasks = append(tasks, Task{text, done})
		}
	}
	if v.IsArray() {
		v.ForEach(func(_, item gjson.Result) bool {
			var text, status string
			item.ForEach(func(key, v gjson.Result) bool {
				switch strings.ToLower(key.Str) {
				case "content", "step", "task", "title", "description", "text", "name":
					if text == "" {
						text = v.Str
					}
				case "status", "state", "done", "completed":
					status = strings.ToLower(v.String())
				}
				return true
			})
			add(text, isDone(status))
			return true
		})
		return tasks
	}
	for line := range strings.Lines(v.Str) {
		line = strings.TrimLeft(strings.TrimSpace(line), "-*0123456789. ")
		if mark, text, ok := strings.Cut(line, "]"); ok && strings.HasPrefix(mark, "[") {
			add(text, strings.TrimSpace(mark[1:]) != "")
		}
	}
	return tasks
}

func isDone(status string) bool {
	switch status {
	case "completed", "complete", "done", "cancelled", "canceled", "finished", "true":
		return true
	}
	return false
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(w string) bool { return slices.Contains(b, w) })
}

// nameWord matches a word of a name. A capital begins one, unless it follows another.
var nameWord = regexp.MustCompile(`\p{Lu}*[^\P{L}\p{Lu}]+|\p{Lu}+`)

// wordsOf splits a name at case, underscores and the like, in lower case.
func wordsOf(name string) []string {
	words := nameWord.FindAllString(name, -1)
	for i, w := range words {
		words[i] = strings.ToLower(w)
	}
	return words
}
