package transcripts

import (
	"bytes"
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// holding returns a function that reports whether a line contains one of some texts.
func holding(texts ...string) func([]byte) bool {
	return func(line []byte) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(line, []byte(text)) })
	}
}

// texts joins the text blocks of a content, which may be a text itself.
func texts(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	var all []string
	content.ForEach(func(_, block gjson.Result) bool {
		if kind := block.Get("type").Str; kind == "text" || kind == "Text" {
			all = append(all, block.Get("text").Str)
		}
		return true
	})
	return strings.Join(all, "\n")
}

// ids returns the ids of the blocks of a kind.
func ids(blocks gjson.Result, kind string) []string {
	return stringsOf(blocks.Get(`#(type=="` + kind + `")#.id`))
}

func stringsOf(list gjson.Result) (all []string) {
	for _, one := range list.Array() {
		all = append(all, one.Str)
	}
	return all
}

// claudeMarks begin records of the user's role that Claude Code wrote.
var claudeMarks = []string{"<command-", "<local-command-", "<bash-", "<task-notification>", "<system-reminder>", "Caveat:", "[Request interrupted"}

func readClaude(s *source, t *turns) error {
	if strings.HasPrefix(filepath.Base(s.path), "agent-") {
		return s.ofSubagent()
	}
	return s.lines(holding(`"user"`, `"assistant"`, `"queued_command"`, `"uuid"`), func(r gjson.Result) {
		t.add(r, "uuid", "parentUuid")
		if r.Get("isSidechain").Bool() || r.Get("isCompactSummary").Bool() {
			return
		}
		if queued := r.Get("attachment"); queued.Get("type").Str == "queued_command" { // typed while the model worked
			if mode := queued.Get("commandMode").Str; t.last != nil && !r.Get("isMeta").Bool() && (mode == "" || mode == "prompt") {
				t.say(r.Get("uuid").Str, texts(queued.Get("prompt")), timeOf(r.Get("timestamp")))
			}
			return
		}
		m, at := r.Get("message"), timeOf(r.Get("timestamp"))
		if r.Get("type").Str == "assistant" {
			id := m.Get("id").Str
			if !strings.HasPrefix(id, "msg_") || r.Get("isApiErrorMessage").Bool() {
				return // the client's own
			}
			t.answer(id, texts(m.Get("content")), at, ids(m.Get("content"), "tool_use")...)
			return
		}
		if r.Get("type").Str != "user" || r.Get("isMeta").Bool() || len(ids(m.Get("content"), "tool_result")) > 0 || m.Get(`content.#(type=="tool_result")`).Exists() {
			return
		}
		switch r.Get("promptSource").Str {
		case "", "typed", "sdk":
			t.goBack()
		default:
			return
		}
		t.Session, t.Dir = r.Get("sessionId").Str, r.Get("cwd").Str
		words := texts(m.Get("content"))
		if name, rest, ok := strings.Cut(words, "</command-name>"); ok && strings.Contains(name, "<command-name>") {
			_, name, _ = strings.Cut(name, "<command-name>")
			_, args, _ := strings.Cut(rest, "<command-args>")
			args, _, _ = strings.Cut(args, "</command-args>")
			words = strings.TrimSpace(name + " " + args)
		} else if slices.ContainsFunc(claudeMarks, func(mark string) bool { return strings.HasPrefix(words, mark) }) {
			if strings.HasPrefix(words, "<bash-input>") {
				t.last = nil // the next answer is to a command
			}
			return
		}
		t.say(r.Get("uuid").Str, words, at)
	})
}

func readCodex(s *source, t *turns) error {
	subagent, plain := false, turns{}
	err := s.lines(holding(`"session_meta"`, `"item_completed"`, `"user_message"`, `"agent_message"`, `"function_call"`, `"turn_context"`, `"message"`, `"thread_rolled_back"`), func(r gjson.Result) {
		p, at := r.Get("payload"), timeOf(r.Get("timestamp"))
		switch kind := r.Get("type").Str; {
		case kind == "session_meta":
			subagent = subagent || p.Get("thread_source").Str == "subagent" || p.Get("source.subagent").Exists()
			if t.Session == "" { // a fork repeats the origin's
				t.Session, t.Dir = p.Get("id").Str, p.Get("cwd").Str
			}
		case subagent:
		case kind == "turn_context":
			t.Dir = p.Get("cwd").Str
		case kind == "response_item":
			plain.Exchange = t.Exchange
			readItem(p, at, t, &plain)
		case kind != "event_msg":
		case p.Get("type").Str == "thread_rolled_back":
			t.takeBack(int(p.Get("num_turns").Int()))
			plain.takeBack(int(p.Get("num_turns").Int()))
		case p.Get("type").Str == "user_message":
			t.say("", p.Get("message").Str, at)
		case p.Get("type").Str == "agent_message":
			if text := p.Get("message").Str; text != "Compact task completed" {
				t.answer("", text, at)
			}
		case p.Get("item.type").Str == "UserMessage":
			t.say(p.Get("turn_id").Str, texts(p.Get("item.content")), at)
		case p.Get("item.type").Str == "AgentMessage" && p.Get("item.phase").Str != "commentary":
			t.answer(p.Get("item.id").Str, texts(p.Get("item.content")), at)
		}
	})
	if subagent {
		return errors.Join(err, s.ofSubagent())
	}
	if len(t.all) == 0 { // other programs write no events
		t.all = plain.all
	}
	return err
}

// readItem reads an item that was sent to the model, or came from it.
func readItem(p gjson.Result, at time.Time, t, plain *turns) {
	text := func() string { return strings.Join(stringsOf(p.Get("content.#.text")), "\n") }
	switch kind, role := p.Get("type").Str, p.Get("role").Str; {
	case kind == "function_call":
		id := p.Get("call_id").Str
		if t.last != nil && len(id) >= minKey {
			t.last.Keys = append(t.last.Keys, id)
		}
		plain.answer("", "", at, id)
	case kind == "message" && role == "user":
		plain.say("", text(), at)
	case kind == "message" && role == "assistant":
		plain.answer(p.Get("id").Str, text(), at)
	}
}

// partsOf returns the first text of Gemini's parts that is not the client's, and the ids of
// their function calls.
func partsOf(parts gjson.Result) (words string, calls []string) {
	if parts.Type == gjson.String {
		return parts.Str, nil
	}
	parts.ForEach(func(_, part gjson.Result) bool {
		if id := part.Get("functionCall.id"); id.Exists() {
			calls = append(calls, id.Str)
		}
		text := part.Get("text").Str
		if words == "" && !part.Get("thought").Bool() && !strings.HasPrefix(text, "<system-reminder>") && !strings.HasPrefix(text, "<session_context>") {
			words = text
		}
		return true
	})
	return words, calls
}

// readGemini replays a log: later lines replace earlier ones, and $set replaces the list. Earlier
// versions stored the list. The first time of a message counts.
func readGemini(s *source, t *turns) error {
	type message struct {
		gjson.Result
		at time.Time
	}
	var order []string
	all, main := make(map[string]message), true
	add := func(_, m gjson.Result) bool {
		id := m.Get("id").Str
		known, ok := all[id]
		if !ok {
			known.at = timeOf(m.Get("timestamp"))
		}
		order, all[id] = append(order, id), message{m, known.at}
		return true
	}
	each := func(r gjson.Result) {
		if r.Get("kind").Exists() || r.Get("messages").Exists() {
			t.Session, main = r.Get("sessionId").Str, cmp.Or(r.Get("kind").Str, "main") == "main"
		}
		if before := r.Get("$rewindTo"); before.Exists() { // an unknown message is before all
			kept := order[:max(0, slices.Index(order, before.Str))]
			for _, id := range order[len(kept):] {
				if m, is := all[id]; is && m.Get("type").Str == "user" && !slices.Contains(kept, id) {
					s.found.TakenBack++
				}
				delete(all, id)
			}
			order = kept
		} else if list := cmp.Or(r.Get("$set.messages").Raw, r.Get("messages").Raw); list != "" {
			order = order[:0]
			gjson.Parse(list).ForEach(add)
		} else if r.Get("id").Exists() {
			add(r, r)
		}
	}
	var err error
	if filepath.Ext(s.path) == ".json" {
		var doc gjson.Result
		doc, err = s.whole()
		each(doc)
	} else {
		err = s.lines(holding(`"sessionId"`, `"type"`, `"$rewindTo"`), each)
	}
	if !main {
		return errors.Join(err, s.ofSubagent())
	}
	if err != nil {
		return err
	}
	t.Dir = geminiDirectory(filepath.Dir(filepath.Dir(s.path)))
	for _, id := range order {
		m, is := all[id]
		if !is {
			continue
		}
		delete(all, id)
		words, calls := partsOf(m.Get("content"))
		switch {
		case m.Get("type").Str == "gemini":
			t.answer("", words, m.at, append(calls, stringsOf(m.Get("toolCalls.#.id"))...)...)
		case m.Get("type").Str == "user" && words != "":
			if shown, _ := partsOf(m.Get("displayContent")); shown != "" {
				words = shown
			}
			t.say(id, words, m.at)
		}
	}
	return nil
}

// geminiDirectory returns the directory of a project folder, from a file in it or from
// Gemini's list of projects.
func geminiDirectory(folder string) (dir string) {
	if root, err := (&source{path: filepath.Join(folder, ".project_root")}).text(); err == nil {
		return strings.TrimSpace(string(root))
	}
	list, err := (&source{path: filepath.Join(folder, "..", "..", "projects.json")}).whole()
	if err != nil {
		return ""
	}
	list.Get("projects").ForEach(func(path, name gjson.Result) bool {
		if name.Str == filepath.Base(folder) {
			dir = path.Str
		}
		return dir == ""
	})
	return dir
}

func readQwen(s *source, t *turns) error {
	response, command := "", ""
	return s.lines(holding(`"provenance"`, `"uuid"`), func(r gjson.Result) {
		t.add(r, "uuid", "parentUuid")
		words, calls := partsOf(r.Get("message.parts"))
		at := timeOf(r.Get("timestamp"))
		switch {
		case r.Get("subtype").Str == "ui_telemetry":
			if id := r.Get("systemPayload.uiEvent.response_id").Str; id != "" {
				response = id
			}
		case r.Get("subtype").Str == "at_command":
			command = r.Get("systemPayload.userText").Str
		case r.Get("provenance").Str == "real_user":
			t.Session, t.Dir = r.Get("sessionId").Str, r.Get("cwd").Str
			if command != "" {
				words, command = command, ""
			}
			t.goBack()
			t.say(r.Get("uuid").Str, words, at)
		case r.Get("provenance").Str == "assistant_output":
			t.answer(response, words, at, calls...)
		case r.Get("provenance").Str == "notification":
			t.last = nil
		}
	})
}

func readCopilot(s *source, t *turns) error {
	before := make(map[string]int) // turns before each event
	return s.lines(holding(`"id"`), func(r gjson.Result) {
		if id := r.Get("id").Str; id != "" {
			before[id] = len(t.all)
		}
		d, at := r.Get("data"), timeOf(r.Get("timestamp"))
		if r.Get("agentId").Exists() || d.Get("agentId").Exists() || strings.HasPrefix(d.Get("source").Str, "agent-") {
			return
		}
		switch r.Get("type").Str {
		case "session.snapshot_rewind":
			if n, known := before[d.Get("upToEventId").Str]; known {
				t.takeBack(len(t.all) - n)
			}
		case "session.start":
			t.Session, t.Dir = d.Get("sessionId").Str, d.Get("context.cwd").Str
		case "user.message":
			t.say(d.Get("messageId").Str, d.Get("content").Str, at)
		case "assistant.message":
			t.answer(d.Get("apiCallId").Str, d.Get("content").Str, at, stringsOf(d.Get("toolRequests.#.toolCallId"))...)
		}
	})
}

func readKimi(s *source, t *turns) error {
	session := filepath.Dir(filepath.Dir(filepath.Dir(s.path)))
	state, err := (&source{path: filepath.Join(session, "state.json")}).whole()
	if err != nil {
		return err
	}
	t.Session, t.Dir = state.Get("id").Str, state.Get("cwd").Str
	return s.lines(holding(`"turn.prompt"`, `"agent.message.appended"`, `"context.undo"`), func(r gjson.Result) {
		at := timeOf(r.Get("time"))
		switch m := r.Get("message.message"); {
		case r.Get("type").Str == "context.undo":
			t.takeBack(int(r.Get("count").Int()))
		case r.Get("type").Str == "turn.prompt":
			if t.last = nil; r.Get("origin.kind").Str == "user" {
				t.say(r.Get("promptId").Str, texts(r.Get("input")), at)
			}
		case r.Get("type").Str == "agent.message.appended" && r.Get("message.meta.source").Str == "llm":
			t.answer("", texts(m.Get("content")), at, stringsOf(m.Get("toolCalls.#.id"))...)
		}
	})
}

func readPi(s *source, t *turns) error {
	return s.lines(holding(`"id"`), func(r gjson.Result) {
		t.add(r, "id", "parentId")
		if r.Get("type").Str == "session" {
			t.Session, t.Dir = r.Get("id").Str, r.Get("cwd").Str
			return
		}
		m, at := r.Get("message"), timeOf(r.Get("timestamp"))
		switch m.Get("role").Str {
		case "user":
			t.goBack()
			t.say(r.Get("id").Str+"@"+t.Session, texts(m.Get("content")), at)
		case "assistant":
			t.answer(m.Get("responseId").Str, texts(m.Get("content")), at, ids(m.Get("content"), "toolCall")...)
		}
	})
}
