// Package transcripts reads conversations from files: the transcripts of coding agents on this machine,
// with the finished turns of a person, and exports of ChatGPT, of Claude and of this program.
package transcripts

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// Exchange is a turn of a person: their words and the model's answer.
type Exchange struct {
	Client   string
	Program  string // the client's name in its requests
	Session  string // the client's id of the conversation
	OnWire   bool   // the client's requests state that id
	File     string // transcript in the project's directory, which may have come with it, or ""
	Dir      string // working directory
	Words    string
	Answer   string    // empty if the next message precedes it
	At       time.Time // of the words; zero if unknown
	Answered time.Time
	ID       string   // the client's id of the words, or ""
	Keys     []string // the provider's ids of the answers and their tool calls
}

// minKey is the shortest id that identifies an answer. Some local servers number their
// answers, or choose from a few ids.
const minKey = 20

// maxKeys is the most ids of a turn. The last ones belong to its final answer.
const maxKeys = 64

// open is a turn during reading.
type open struct {
	Exchange
	answers []answer
	node    string // its record in a tree
	isBack  bool   // the person took it back
}

// tree holds the parents of a file's records. The parents of the first ones are "".
type tree struct {
	parents map[string]string
	nodes   int    // records with a child
	node    string // the last record
	forks   bool   // its parent has an earlier child
}

// add adds a record, whose fields id and parent name it and its parent.
func (tr *tree) add(r gjson.Result, id, parent string) {
	of := r.Get(parent)
	if tr.node, tr.forks = r.Get(id).Str, false; tr.node == "" || !of.Exists() {
		return
	}
	if tr.parents == nil {
		tr.parents = make(map[string]string)
	}
	_, has := tr.parents["child of "+of.Str]
	if tr.forks = has && (of.Str != "" || tr.nodes > 1); !has {
		tr.nodes++
	}
	tr.parents["child of "+of.Str], tr.parents[tr.node] = "", of.Str
}

// goBack takes back the turns after the parent of the last record if that record, a person's
// message, begins another branch.
func (t *turns) goBack() {
	for _, o := range t.all {
		for node, steps := o.node, 0; t.forks && node != "" && steps < len(t.parents); steps++ {
			parent, known := t.parents[node]
			o.isBack = o.isBack || known && parent == t.parents[t.node]
			node = parent
		}
	}
}

func (t *turns) takeBack(n int) {
	for _, o := range slices.Backward(t.all) {
		if n > 0 && !o.isBack {
			o.isBack = true
			n--
		}
	}
	t.last = nil
}

// answer is one answer of the model.
type answer struct {
	id    string
	text  string
	calls bool // it calls tools, so the turn continues
	at    time.Time
}

// turns gathers the turns of one file.
type turns struct {
	Exchange // common fields of the following turns
	all      []*open
	last     *open // nil: answers belong to no person's words
	tree
}

// say begins a turn with a person's words.
func (t *turns) say(id, words string, at time.Time) {
	t.last, words = nil, wordsOf(words)
	if strings.TrimSpace(words) == "" {
		return
	}
	if n := len(t.all); id != "" && n > 0 && strings.TrimRight(t.all[n-1].ID, "+") == id { // sent while the model worked
		id = t.all[n-1].ID + "+"
	}
	o := &open{Exchange: t.Exchange}
	o.ID, o.Words, o.At, o.Keys, o.node = id, words, at, nil, t.node
	t.all, t.last = append(t.all, o), o
}

// wordsOf returns the person's words in a message, as in a live request. A command counts
// whole.
func wordsOf(text string) string {
	if strings.HasPrefix(text, "/") {
		return text
	}
	body, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": text}}})
	if err != nil {
		return ""
	}
	var conv dialect.Conversation
	if !(chat.Dialect{}).Parse(body, &conv) || conv.Last < 0 || !conv.Messages[conv.Last].Person {
		return ""
	}
	return string(conv.Text(conv.Last))
}

// answer adds a piece of an answer. Pieces with the same id belong together, but local servers give
// the answer after a tool call the id of the call's.
func (t *turns) answer(id, text string, at time.Time, calls ...string) {
	if t.last == nil {
		return
	}
	list := &t.last.answers
	if n := len(*list); n == 0 || id == "" || (*list)[n-1].id != id || len(id) < minKey && (*list)[n-1].calls && len(calls) == 0 {
		*list = append(*list, answer{id: id})
	}
	a := &(*list)[len(*list)-1]
	if a.text != "" && text != "" {
		a.text += "\n"
	}
	a.text, a.at, a.calls = a.text+text, at, a.calls || len(calls) > 0
	for _, key := range append([]string{id}, calls...) {
		if len(key) >= minKey && !slices.Contains(t.last.Keys, key) {
			t.last.Keys = append(t.last.Keys, key)
		}
	}
}

// finished returns the turns with an answer. A turn ends with the first answer that calls
// no tools, like a live one. A message that precedes another one needs no answer: the person
// typed while the model worked, or stopped it. Some clients let them repeat it.
func (t *turns) finished() (list []Exchange, unfinished, takenBack int) {
	said := len(t.all)
	t.all = slices.DeleteFunc(t.all, func(o *open) bool { return o.isBack })
	takenBack = said - len(t.all)
	for n, o := range t.all {
		i := slices.IndexFunc(o.answers, func(a answer) bool { return !a.calls && strings.TrimSpace(a.text) != "" })
		if goesOn := n+1 < len(t.all) && t.all[n+1].Session == o.Session && !strings.HasPrefix(o.Words, "/") && !strings.Contains(t.all[n+1].Words, o.Words); i < 0 && !goesOn {
			unfinished++
			continue
		}
		if o.Answered = o.At; i >= 0 {
			o.Answer, o.Answered = o.answers[i].text, o.answers[i].at
		}
		o.Keys = o.Keys[max(0, len(o.Keys)-maxKeys):]
		list = append(list, o.Exchange)
	}
	return list, unfinished, takenBack
}

// Merge returns the turns of several files without copies, oldest file first. A turn
// belongs to the first session with it: resumes and forks copy histories.
func Merge(files [][]Exchange) (list []Exchange) {
	files = slices.DeleteFunc(slices.Clone(files), func(f []Exchange) bool { return len(f) == 0 })
	slices.SortStableFunc(files, func(a, b []Exchange) int { // a copy ends later
		return cmp.Or(a[0].At.Compare(b[0].At), a[len(a)-1].At.Compare(b[len(b)-1].At))
	})
	seen := make(map[string]bool)
	for _, file := range files {
		for _, t := range file {
			var names []string
			for _, key := range t.Keys {
				names = append(names, t.Client+"\x00key\x00"+key)
			}
			if t.ID != "" {
				names = append(names, t.Client+"\x00id\x00"+t.ID)
			}
			if !t.At.IsZero() {
				names = append(names, t.Client+"\x00text\x00"+t.At.UTC().Format(time.RFC3339Nano)+"\x00"+t.Words)
			}
			if !slices.ContainsFunc(names, func(n string) bool { return seen[n] }) {
				list = append(list, t)
			}
			for _, n := range names {
				seen[n] = true
			}
		}
	}
	return list
}
