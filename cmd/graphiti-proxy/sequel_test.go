package main

import (
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
