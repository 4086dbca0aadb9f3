package main

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

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
