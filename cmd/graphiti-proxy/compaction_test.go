package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// TestSequelShowsASummary: a request for a summary in words of no rule is recognized by the
// next request, which has the summary in place of the earlier answers.
func TestSequelShowsASummary(t *testing.T) {
	t.Parallel()
	const (
		asked   = "Wohin schreiben wir die Bestellungen?"
		summary = "## Beschlossen\n- wir nehmen Redis für die Warteschlange der Bestellungen\n## Next Steps\n- die Tests der Warteschlange schreiben\n"
	)
	wish := "Unser Ordner heißt Zeisig. Fasse bitte alles, was wir hier bisher getan und beschlossen haben, für eine andere Person zusammen." + strings.Repeat(" Nenne jede Datei, und lass nichts weg.", 8)
	group, _ := graphiti.Namer{}.Group(graphiti.ScopeWorkspace, graphiti.Who{User: "user:josh", Workspace: widgets})
	history := []m{user(asked), replied("In die Tabelle orders.")}
	for name, tc := range map[string]struct {
		next      []m
		isSummary bool
		notes     bool
	}{
		"in a user's message":      {[]m{user("Bisher geschah:\n\n" + summary + "\nMach damit weiter.")}, true, true},
		"person's messages remain": {[]m{user(asked), user("Bisher geschah:\n\n" + summary), user("Und jetzt?")}, true, true},
		"the history remains":      {append(append([]m{}, history...), user(wish), replied(summary), user("Und jetzt?")), false, false},
		"a window of the history":  {[]m{replied(summary), user("Und jetzt?")}, false, true},
		"an edited message":        {append(append([]m{}, history...), user("Und jetzt?")), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh", "recall.resume_within": "0"})
			w.model.SetAnswer(func(in proxytest.Input) proxytest.Reply {
				if strings.Contains(in.Messages[len(in.Messages)-1].Text, wish) {
					return proxytest.Reply{Text: summary}
				}
				return proxytest.Reply{Text: "In die Tabelle orders."}
			})
			ask := func(messages ...m) string {
				body := chat(messages...)
				body["tools"] = []m{{"type": "function", "function": m{"name": "bash", "parameters": m{"type": "object"}}}}
				saw, _ := w.see(body, "X-Graphiti-Session", "one", "X-Graphiti-Workspace", widgets)
				return strings.Join(saw, "\n")
			}
			ask(user(asked))
			w.remembered(asked)
			ask(append(append([]m{}, history...), user(wish))...)
			w.remembered(wish[:50])
			if saw := ask(tc.next...); strings.Contains(saw, "earlier in this session, asked: “Unser Ordner") != tc.notes {
				t.Errorf("got %s, want the session's notes: %v", saw, tc.notes)
			}
			w = w.noted()
			stored := 0
			for _, r := range w.heldIn(group) {
				if strings.Contains(r.Text, `<graphiti_episode kind="session_summary">`) {
					stored++
				} else if r.Role == graphiti.RoleUser && strings.Contains(r.Text, "Redis") && strings.Contains(r.Text, "Mach damit") {
					t.Errorf("got the summary as a person's message %q", r.Text)
				}
			}
			if (stored == 1) != tc.isSummary {
				t.Errorf("got %d stored summaries, want one: %v", stored, tc.isSummary)
			}
			saw, _ := w.see(chat(user("Wie heißt unser Ordner?")), "X-Graphiti-Session", "two", "X-Graphiti-Workspace", widgets)
			if strings.Contains(saw[0], "heißt Zeisig") == tc.isSummary {
				t.Errorf("got %q, want the request for the summary as a turn: %v", saw, !tc.isSummary)
			}
			if tc.isSummary {
				w.shortTerm(group, `"open":["die Tests der Warteschlange schreiben"]`)
			}
		})
	}
}

// TestSummaryOfQuotedTurns: a request without tools that quotes several turns, in a form of no
// rule, and asks to sum them up gets the notes of their session.
func TestSummaryOfQuotedTurns(t *testing.T) {
	t.Parallel()
	const one, two = "The staging database is called Bluefin.", "We decided to move the queue to Redis."
	for name, tc := range map[string]struct {
		ask    string
		reason string
	}{
		"two turns":    {"Condense this conversation: >> " + one + " << Understood, I will keep that in mind. >> " + two + " << Understood, I will keep that in mind.", "reason=summary"},
		"one turn":     {"Condense this conversation: >> " + one + " << Understood, I will keep that in mind.", "reason=probe"},
		"another wish": {"Name a colour for this: >> " + one + " << Understood, I will keep that in mind. >> " + two + " << Understood, I will keep that in mind.", "reason=probe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
			place := []string{"X-Graphiti-Workspace", widgets}
			for _, messages := range [][]m{{user(one)}, {user(one), replied("Understood, I will keep that in mind."), user(two)}, {user(one), replied("Understood, I will keep that in mind."), user(two), replied("Understood, I will keep that in mind."), user("Then go on, please.")}} {
				body := chat(messages...)
				body["tools"] = []m{{"type": "function", "function": m{"name": "bash", "parameters": m{"type": "object"}}}}
				w.see(body, place...)
				w.remembered(messages[len(messages)-1]["content"].(string))
			}
			saw, header := w.see(chat(m{"role": "system", "content": "You help."}, user(tc.ask)), place...)
			if isSummary := tc.reason == "reason=summary"; !strings.HasSuffix(header, tc.reason) || strings.Contains(saw[0], "earlier in this session, asked: “Then go on") != isSummary || strings.Contains(saw[0], "decided: “"+two) != isSummary {
				t.Errorf("got %s and %q, want %s, with notes for a summary only", header, saw[0], tc.reason)
			}
		})
	}
}

// midTurn describes how a client compacts its history within a tool loop.
type midTurn struct {
	path    string
	call    func(id, command, result string) []m
	ask     func(history []m, result string) []m // the request for the summary
	replace func(summary string) []m             // the history after the compaction
	system  string
}

const (
	midDecided = "We switched the cache from Redis to Valkey."
	midAsked   = "Make the check pass."
	midNext    = "And which file was it?"
	midSummary = "1. Primary Request:\n   Pass the check of the project, whatever it takes.\n\n7. Pending Tasks:\n   - Run check.sh once more\n"
	midError   = "conf.ini: error: unknown key 'bad'"
	midNote    = "files changed: “conf.ini”"
	midAnswer  = "The key is called good now."
)

var (
	askEnglish = "Your task is to create a detailed summary of the conversation so far, with all that was asked." + strings.Repeat(" Be thorough.", 30)
	askGerman  = "Fasse bitte alles zusammen, was wir bisher getan und beschlossen haben." + strings.Repeat(" Lass nichts weg.", 20)

	toolUse = func(id, command, result string) []m {
		return []m{{"role": "assistant", "content": []m{{"type": "tool_use", "id": id, "name": "Bash", "input": m{"command": command}}}},
			{"role": "user", "content": []m{{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": strings.HasPrefix(result, "Exit code 2")}}}}
	}
	toolCall = func(id, command, result string) []m {
		return []m{{"role": "assistant", "content": "", "tool_calls": []m{{"id": id, "type": "function", "function": m{"name": "bash", "arguments": fmt.Sprintf(`{"command":%q}`, command)}}}},
			{"role": "tool", "tool_call_id": id, "content": result}}
	}
	functionCall = func(id, command, result string) []m {
		return []m{{"type": "function_call", "call_id": id, "name": "bash", "arguments": fmt.Sprintf(`{"command":%q}`, command)},
			{"type": "function_call_output", "call_id": id, "output": result}}
	}
	beside = func(ask string) func([]m, string) []m {
		return func(history []m, _ string) []m {
			last := history[len(history)-1]
			return append(slices.Clone(history[:len(history)-1]), m{"role": "user", "content": append(slices.Clone(last["content"].([]m)), m{"type": "text", "text": ask})})
		}
	}
	behind = func(ask string) func([]m, string) []m {
		return func(history []m, _ string) []m { return append(slices.Clone(history), user(ask)) }
	}
	clientsMidTurn = map[string]midTurn{
		"Claude Code": {"/v1/messages", toolUse, beside(askEnglish), func(s string) []m {
			return []m{user("This session is being continued from a previous conversation that ran out of context.\n\nSummary:\n" + s)}
		}, ""},
		"Codex": {"/v1/responses", functionCall, behind(summarise), func(s string) []m {
			return []m{user(midDecided), user(midAsked), user("Another language model started to solve this problem and wrote:\n<summary>\n" + s + "</summary>")}
		}, ""},
		"Codex, unreadable summary": {"/v1/responses", functionCall, func(history []m, _ string) []m {
			return append(slices.Clone(history), m{"type": "compaction_trigger"})
		}, func(string) []m {
			return []m{user(midDecided), user(midAsked), {"type": "compaction", "encrypted_content": "eA=="}}
		}, ""},
		"opencode": {"/v1/chat/completions", toolCall, func(_ []m, result string) []m {
			return []m{{"role": "system", "content": "You are a context summarization agent."}, user("Here is the conversation so far:\n\n<conversation>\n[User]: " + midAsked + "\n\n[Assistant]: Noted.\n\n[Tool result]: " + result + "\n</conversation>\n\nWrite a summary.")}
		}, func(s string) []m {
			return []m{user("What did we do so far?"), replied("<summary>\n" + s + "</summary>"), user("Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed.")}
		}, "You are opencode."},
		"Copilot CLI": {"/v1/chat/completions", toolCall, behind(askEnglish), func(s string) []m {
			return []m{user("Some of the conversation history has been summarized to free up context.\n\n<summary>\n" + s + "</summary>\n")}
		}, ""},
		"words of no rule": {"/v1/messages", toolUse, beside(askGerman), func(s string) []m {
			return []m{user("Bisher geschah:\n\n" + s + "\nMach damit weiter.")}
		}, ""},
		"words of no rule, summary in an element": {"/v1/messages", toolUse, beside(askGerman), func(s string) []m {
			return []m{user("<summary>\n" + s + "</summary>\n")}
		}, ""},
	}
)

func (c *midTurn) body(messages []m) m {
	tool := m{"type": "function", "name": "bash", "parameters": m{"type": "object"}}
	switch c.path {
	case "/v1/messages":
		return m{"model": "m", "max_tokens": 9, "messages": messages, "tools": []m{{"name": "Bash", "input_schema": m{"type": "object"}}}}
	case "/v1/responses":
		return m{"model": "m", "input": messages, "tools": []m{tool}}
	}
	if c.system != "" && messages[0]["role"] != "system" {
		messages = append([]m{{"role": "system", "content": c.system}}, messages...)
	}
	return m{"model": "m", "messages": messages, "tools": []m{{"type": "function", "function": tool}}}
}

// TestCompactionWithinTurn checks that a turn continues after a compaction between two tool
// rounds. Its work, its answer and the person's message are stored as one turn, the summary
// as a summary, and the notes stay before the same message, byte for byte. If no rule
// matches the client's instruction, the summary ends the turn and a second one follows.
func TestCompactionWithinTurn(t *testing.T) {
	t.Parallel()
	group, _ := graphiti.Namer{}.Group(graphiti.ScopeWorkspace, graphiti.Who{User: "user:josh", Workspace: widgets})
	for name, c := range clientsMidTurn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, t.TempDir(), map[string]string{"identity.owner": "user:josh"})
			send := func(reply proxytest.Reply, messages ...m) string {
				t.Helper()
				w.model.SetAnswer(func(proxytest.Input) proxytest.Reply { return reply })
				w.model.Forget()
				if status, h := w.exchange(c.path, c.body(messages), "Anthropic-Version", "2023-06-01", "X-Graphiti-Session", "one", "X-Graphiti-Workspace", widgets); status != 200 {
					t.Fatalf("got status %d, want 200: %v", status, h)
				}
				return string(w.model.Requests()[0].Body)
			}
			runs := func(command string) proxytest.Reply {
				return proxytest.Reply{Tool: "bash", Arguments: fmt.Sprintf(`{"command":%q}`, command)}
			}
			says := func(text string) proxytest.Reply { return proxytest.Reply{Text: text} }

			send(says("Noted."), user(midDecided))
			w.remembered(midDecided)
			history := []m{user(midDecided), replied("Noted."), user(midAsked)}
			send(runs("printf bad=1 > conf.ini"), history...)
			history = append(history, c.call("t1", "printf bad=1 > conf.ini", "")...)
			send(runs("sh check.sh"), history...)
			w.shortTerm(group, "conf.ini")
			history = append(history, c.call("t2", "sh check.sh", "Exit code 2\n"+midError)...)
			isRule, turns := !strings.HasPrefix(name, "words"), 1
			answered := "<analysis>\nhm\n</analysis>\n<summary>\n" + midSummary + "</summary>"
			isReadable := !strings.HasSuffix(name, "unreadable summary")
			if !isReadable {
				answered = ""
			}
			asked := send(says(answered), c.ask(history, "Exit code 2\n"+midError)...)
			if got := blockIn(asked); strings.Contains(got, midNote) != (isRule && isReadable) || isRule && isReadable && strings.Index(asked, "<graphiti_memory>") > strings.LastIndex(asked, "ummary") {
				t.Errorf("got the request for a summary with %q, want the notes before the instruction: %v", got, isRule && isReadable)
			}
			if isRule && isReadable {
				w.shortTerm(group, "Run check.sh once more")
			}
			if !isRule { // a stored turn means that its answer has been read
				w.delivered(2)
			}

			history = c.replace(midSummary)
			first := send(runs("printf good=1 > conf.ini"), history...)
			head, _, _ := strings.Cut(first, "/graphiti_memory")
			if !strings.Contains(blockIn(first), midNote) {
				t.Errorf("got %s, want a block with the notes after the compaction", first)
			}
			history = append(history, c.call("t3", "printf good=1 > conf.ini", "")...)
			second := send(runs("sh check.sh"), history...)
			history = append(history, c.call("t4", "sh check.sh", "Exit code 0\nok")...)
			third := send(says(midAnswer), history...)
			w.remembered(midAsked)
			if !isRule {
				w.delivered(4) // including the summary
			}
			history = append(history, replied(midAnswer), user(midNext))
			fourth := send(says("conf.ini."), history...)
			for i, body := range []string{second, third, fourth} {
				if !strings.HasPrefix(body, head) || strings.Count(body, midNote) != 1 {
					t.Errorf("request %d after the compaction: got %s, want it to begin with %s, and no other notes of this file", i+2, body, head)
				}
			}

			w = w.noted()
			var got []string
			for _, r := range w.heldIn(group) {
				text := strings.TrimSpace(r.Text)
				switch {
				case graphiti.IsWork(r.Name):
					continue
				case strings.Contains(text, `kind="session_summary"`):
					text = "a summary"
				}
				got = append(got, string(r.Role)+": "+text)
			}
			want := []string{"user: " + midDecided, "assistant: Noted.", "system: a summary", "user: " + midAsked, "assistant: " + midAnswer, "user: " + midNext, "assistant: conf.ini."}
			if !isRule { // the summary has ended one turn, and the rest is another
				turns, want = 2, append(want, "user: "+midAsked, "assistant: "+answered)
			}
			if !isReadable {
				want = slices.DeleteFunc(want, func(row string) bool { return row == "system: a summary" })
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if all := w.work(); strings.Count(all, "changed conf.ini") != turns {
				t.Errorf("got the work %s, want %d turns with the file", all, turns)
			}
		})
	}
}

// TestTranscriptsOfOwnConversations checks that the summary of a transcript by an unknown
// client is stored as a summary of the conversation in the transcript, in its project and
// session, and that a transcript pasted by a person is stored as the person's words.
func TestTranscriptsOfOwnConversations(t *testing.T) {
	t.Parallel()
	const (
		answer  = "The staging database is called Bluefin, and it listens on port 6543."
		summary = "They spoke of Bluefin, which listens on port 6543, and of nothing else."
		pasted  = "User: Is the shop open?\nAssistant: The shop opens at nine o'clock on Mondays, at ten on Tuesdays.\n\nPlease summarize this."
	)
	w, one, _ := projects(t, nil)
	var summarised string
	w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		if last := c.Messages[len(c.Messages)-1].Text; strings.Contains(last, "<log>") {
			summarised = last
			return proxytest.Reply{Text: "<summary>\n" + summary + "\n</summary>"}
		}
		return proxytest.Reply{Text: answer}
	})
	w.see(qwen(one, user("What is the staging database called?")))
	w.delivered(2)
	w.see(chat(m{"role": "system", "content": "You write handoff notes."}, user("<log>\n[User]: What is the staging database called?\n\n[Assistant]: "+answer+"\n</log>\n\nWrite them.")))
	w.delivered(3)
	w.see(chat(user("Hello.")), "User-Agent", "Other/1")
	w.delivered(4)
	w.see(chat(user(pasted)), "User-Agent", "Other/1")
	w.delivered(5)
	if !strings.Contains(summarised, "<log>") {
		t.Fatal("the model was not asked")
	}
	kept := w.keptFor(one)
	if !strings.Contains(kept, `<graphiti_episode kind="session_summary">`) || !strings.Contains(kept, summary) || strings.Contains(kept, "<log>") || strings.Contains(kept, "Hello.") {
		t.Errorf("kept of the project: %q", kept)
	}
	// The next request begins with the summary.
	saw, header := w.see(chat(user("The conversation history before this point was compacted into the following summary:\n\n<summary>\n"+summary+"\n</summary>"), user("And production?")))
	w.delivered(6)
	if kept := w.keptFor(one); !strings.Contains(kept, "And production?") || strings.Contains(kept, "before this point") {
		t.Errorf("the conversation that goes on is another: %q, %s, kept %q", saw, header, kept)
	}
}

// TestCompaction checks that a client's summary of its history is stored once, as a
// summary, and recalled later, and that the instruction for it is not stored. The request
// for it gets the session's notes and no search results.
func TestCompaction(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	w.say("Our release branch is called aurora.", "X-Graphiti-Session", "elsewhere")
	w.say("Good morning.", "X-Graphiti-Session", "long") // the session has no project from now on
	w.delivered(2)
	w.shortTerm(graphiti.SessionScope("session:long", ""), "Good morning.")
	w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		if strings.Contains(c.Messages[len(c.Messages)-1].Text, "CONTEXT CHECKPOINT") {
			return proxytest.Reply{Text: "<analysis>Let me think.</analysis><summary>Open: the importer for Zanzibar fails on empty rows.</summary>"}
		}
		return proxytest.Reply{Text: "I see."}
	})
	history := []m{{"role": "user", "content": "The importer of the release branch fails."}, {"role": "assistant", "content": "I see."},
		{"role": "user", "content": summarise}}
	for range 2 {
		_, h := w.exchange("/v1/chat/completions", m{"model": "m", "messages": history}, "X-Graphiti-Session", "long")
		if header := h.Get("X-Graphiti-Memory"); !strings.HasPrefix(header, "recalled; facts=1") || !strings.Contains(header, "reason=summary") {
			t.Errorf("header %s", header)
		}
		requests := w.model.Requests()
		body := string(requests[len(requests)-1].Body)
		if at := strings.Index(body, "<graphiti_memory>"); at < strings.Index(body, "I see.") || at > strings.Index(body, "CONTEXT CHECKPOINT") || !strings.Contains(body, "asked: “Good morning.”") || strings.Contains(body, "aurora") {
			t.Errorf("got the request %s, want the notes, and no search results", body)
		}
	}
	w = w.restart()
	summaries := 0
	for _, held := range w.held() {
		if strings.Contains(held, "CONTEXT CHECKPOINT") || strings.Contains(held, "Let me think") {
			t.Errorf("kept: %s", held)
		}
		if strings.Contains(held, `<graphiti_episode kind="session_summary">`) && strings.Contains(held, "scope: user") {
			summaries++
		}
	}
	if summaries != 1 {
		t.Errorf("the summary was kept %d times: %q", summaries, w.held())
	}
	if _, _, saw := w.say("What was wrong with the importer for Zanzibar?", "X-Graphiti-Session", "next"); !strings.Contains(saw, "- session summary, ") || strings.Contains(saw, "graphiti_episode") {
		t.Errorf("the model saw %s", saw)
	}
}
