package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// memories runs a test on each kind of memory. settle waits until the memory has processed
// all turns.
func memories(t *testing.T, f func(t *testing.T, m *servicetest.Fixture, settle func())) {
	t.Run("embedded", func(t *testing.T) {
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
		f(t, m, func() { m.Settle(t) })
	})
	for _, kind := range []string{"graphiti", "graphiti-mcp"} {
		t.Run(kind, func(t *testing.T) {
			g := startGraphiti(t, kind)
			m := onGraphiti(t, kind, g)
			f(t, m, func() {
				m.Settle(t)
				must(t, g.Settle(t.Context()))
			})
		})
	}
}

var own = []graphiti.Target{{Scope: graphiti.ScopeUser, Group: servicetest.OwnersGroup}}

// turn returns a turn of the owner, as a client's request or its history contains it.
func turn(id, session, said, answered string) ledger.Turn {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return ledger.Turn{ID: id, Session: "session:" + session, Owner: servicetest.Owner, User: said, Assistant: answered, Said: at, Answered: at, Targets: own}
}

func add(t *testing.T, m *servicetest.Fixture, settle func(), turns ...ledger.Turn) {
	t.Helper()
	for i := range turns {
		turns[i].Generation = m.State.Generations.Now()
		must(t, m.Pipeline.Add(t.Context(), turns[i]))
	}
	settle()
}

// texts returns all stored messages, and the id of the last message that contains a text.
func texts(t *testing.T, m *servicetest.Fixture, says string) (all, id string) {
	t.Helper()
	for _, r := range run(t, m, service.Show, service.ShowRequest{Last: 50}).Messages {
		if strings.Contains(r.Text, says) {
			id = r.ID
		}
		all += r.Role + ": " + r.Text + "\n"
	}
	return all, id
}

// TestOneMessageIsForgotten checks that Forget deletes one message and leaves the other
// message of its turn and the blocks sent with it. Neither a repeated request nor a
// client's history restores the message.
func TestOneMessageIsForgotten(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		first := turn(strings.Repeat("1a", 16), "s1", "My cat is called Miso.", "What a soft name.")
		second := turn(strings.Repeat("2b", 16), "s1", "My dog is called Rex.", "Good dog.")
		add(t, m, settle, first, second)
		_, err := m.State.Decisions.Keep(t.Context(), [16]byte{1}, inject.Decision{Block: "My cat is called Miso.", Facts: 1, Generation: m.State.Generations.Now()}, servicetest.OwnersGroup)
		must(t, err)
		_, cat := texts(t, m, "Miso")
		_, good := texts(t, m, "Good dog")
		if cat == "" || good == "" {
			t.Fatal("messages are shown without ids")
		}
		out, entry, err := call(t, m, "memory/forget", `{"message":"`+cat+`"}`)
		if f, ok := out.(service.Forgotten); err != nil || !ok || f.Blocks != 0 || f.Message != cat || !slices.Equal(f.Groups, []string{servicetest.OwnersGroup}) {
			t.Fatalf("%+v, %v", out, err)
		}
		if entry.What != "forget" || !slices.Equal(entry.Groups, []string{servicetest.OwnersGroup}) || !strings.Contains(fmt.Sprint(entry.More), cat) {
			t.Errorf("audit: %+v", entry)
		}
		run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Message: good}}) // the answer of the other turn
		history := turn(strings.Repeat("3c", 16), "s1", first.User, first.Assistant)
		history.Backfill = true
		add(t, m, settle, first, history)
		all, _ := texts(t, m, "")
		for text, want := range map[string]int{"Miso": 0, "What a soft name.": 1, "My dog is called Rex.": 1, "Good dog.": 0} {
			if n := strings.Count(all, text); n != want {
				t.Errorf("%q is there %d times, want %d:\n%s", text, n, want, all)
			}
		}
		if found := run(t, m, service.Search, service.SearchRequest{Query: "What is my cat called?", All: true}); strings.Contains(fmt.Sprint(found), "Miso") {
			t.Errorf("%+v", found)
		}
		if m.State.Generations.Blocks(servicetest.OwnersGroup) {
			t.Error("the group is still being forgotten")
		}
		// The remaining messages still belong to their conversation.
		for _, p := range run(t, m, service.Groups, service.Selector{Session: "s1"}).Parts {
			run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: p.Group, Session: "s1"}})
		}
		if all, _ := texts(t, m, ""); all != "" {
			t.Errorf("left of a forgotten conversation:\n%s", all)
		}
	})
}

// TestForgottenMessageLeavesTheCard checks that a forgotten text leaves the card and can be
// promoted again.
func TestForgottenMessageLeavesTheCard(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		promote := func(text string) {
			run(t, m, service.Promote, service.PromoteRequest{Promotion: service.Promotion{Kind: "decision", Text: text}})
			settle()
		}
		card := func() string {
			return strings.Join(run(t, m, service.Show, service.ShowRequest{Last: 5}).Card, "\n")
		}
		promote("Postgres, not MySQL")
		promote("Tabs, not spaces")
		promote("MySQL") // the forgotten text contains it
		_, id := texts(t, m, "Postgres")
		run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Message: id}})
		if all, _ := texts(t, m, ""); strings.Contains(all, "Postgres") || strings.Contains(card(), "Postgres") || !strings.Contains(card(), "MySQL") || !strings.Contains(all, "Tabs") {
			t.Errorf("kept:\n%s\ncard: %s", all, card())
		}
		promote("Postgres, not MySQL")
		if all, _ := texts(t, m, ""); strings.Count(all, "Postgres") != 1 || !strings.Contains(card(), "Postgres") {
			t.Errorf("promoted again:\n%s\ncard: %s", all, card())
		}
	})
}

// TestCorrected checks that the new statement replaces the old one in recall and in its
// conversation, that a promoted text stays promoted, and that a client's history does not
// undo a correction.
func TestCorrected(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		said := turn(strings.Repeat("4d", 16), "s1", "Our database is MySQL.", "Noted.")
		add(t, m, settle, said)
		run(t, m, service.Promote, service.PromoteRequest{Promotion: service.Promotion{Kind: "decision", Text: "Deploy on Mondays and Fridays"}})
		settle()
		_, id := texts(t, m, "MySQL")
		out, entry, err := call(t, m, "memory/correct", `{"message":"`+id+`","text":"Our database is Postgres.","now":true}`)
		if c, ok := out.(service.Corrected); err != nil || !ok || c.Message != id || c.Kind != "" || entry.What != "correct" || strings.Contains(fmt.Sprint(entry), "Postgres") {
			t.Fatalf("%+v, %+v, %v", out, entry, err)
		}
		_, id = texts(t, m, "Fridays")
		if c := run(t, m, service.Correct, service.CorrectRequest{Selector: service.Selector{Message: id}, Text: "Deploy on Mondays", Now: true}); c.Kind != "decision" {
			t.Errorf("%+v", c)
		}
		settle()
		history := turn(strings.Repeat("5e", 16), "s1", said.User, said.Assistant)
		history.Backfill = true
		add(t, m, settle, said, history)
		all, _ := texts(t, m, "")
		for text, want := range map[string]int{"MySQL": 0, "user: Our database is Postgres.": 1, "Noted.": 1, "Fridays": 0, "Mondays": 1} {
			if n := strings.Count(all, text); n != want {
				t.Errorf("%q is there %d times, want %d:\n%s", text, n, want, all)
			}
		}
		if card := fmt.Sprint(run(t, m, service.Show, service.ShowRequest{Last: 5}).Card); strings.Contains(card, "Fridays") || !strings.Contains(card, "Mondays") {
			t.Errorf("card: %s", card)
		}
		found := fmt.Sprint(run(t, m, service.Search, service.SearchRequest{Query: "Which database is ours?", All: true}).Facts)
		if strings.Contains(found, "MySQL") || !strings.Contains(found, "Postgres") {
			t.Errorf("%s", found)
		}
		for _, p := range run(t, m, service.Groups, service.Selector{Session: "s1"}).Parts {
			run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: p.Group, Session: "s1"}})
		}
		if all, _ := texts(t, m, ""); strings.Contains(all, "database") {
			t.Errorf("left of a forgotten conversation:\n%s", all)
		}
	})
}

// TestMessageRefused checks that invalid requests return an error and change nothing, and
// that Forget fails for a message that still waits for Graphiti.
func TestMessageRefused(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s1", "", "My cat is called Miso.")
	_, id := texts(t, m, "Miso")
	for in, says := range map[string]string{
		`{"message":""}`:                                  "message is empty",
		`{"message":"123456789abc"}`:                      "message with the id",
		`{"message":"` + id + `","session":"s1"}`:         "already selects",
		`{"message":"` + id + `","user":"ann"}`:           "message with the id",
		`{"message":"` + id + `","text":""}`:              "text: is empty",
		`{"text":"x"}`:                                    "message: name the message",
		`{"message":"` + id + `","text":"` + token + `"}`: "credential",
		`{"message":"` + id + `","last":5}`:               "selects only a message to forget",
	} {
		op := "memory/forget"
		if strings.Contains(in, "text") {
			op = "memory/correct"
		} else if strings.Contains(in, "last") {
			op = "memory/show"
		}
		if _, _, err := call(t, m, op, in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s %s: %v, want %q", op, in, err, says)
		}
	}
	if all, _ := texts(t, m, ""); !strings.Contains(all, "Miso") {
		t.Error("what was refused was done")
	}

	g := startGraphiti(t, "graphiti")
	there := onGraphiti(t, "graphiti", g)
	g.Close()
	must(t, there.Pipeline.Add(context.WithoutCancel(t.Context()), turn("6f", "s1", "My cat is called Miso.", "")))
	waiting := graphiti.MessageID(graphiti.EpisodeName("6f", graphiti.RoleUser))
	if _, _, err := call(t, there, "memory/forget", `{"message":"`+waiting+`"}`); err != nil {
		t.Errorf("a message that waits: %v", err)
	}
	if all, _ := texts(t, there, ""); strings.Contains(all, "Miso") {
		t.Errorf("a message that waits is still there while Graphiti is down: %s", all)
	}
}

// TestForgetMessage_Lines checks that forgetting a message also deletes its lines of the
// card, and the text that was stored when its person confirmed a line.
func TestForgetMessage_Lines(t *testing.T) {
	t.Parallel()
	for _, multi := range []bool{false, true} {
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{Multi: multi})
		who := graphiti.Who{User: "user:josh", Session: "session:s", Workspace: "path:/w", Application: "a", Program: "app"}
		if multi {
			who.SetPerson()
		}
		const text = "Remember that my locker is number 4417."
		turn := strings.Repeat("ab", 16)
		heard := m.Standing.Apply(t.Context(), standing.Message{Who: who, Turn: turn, Text: text, Typed: true, FromFile: func() bool { return false }})
		if heard.Promoted != 1 || heard.Pending != 1 {
			t.Fatalf("multi %v: Hear = %+v, want one promoted and one pending", multi, heard)
		}
		group, _ := graphiti.Namer{Raw: true}.Group(graphiti.ScopeWorkspace, who)
		err := m.Pipeline.Add(t.Context(), ledger.Turn{
			ID: turn, Session: who.Session, Owner: who.Owner(), Workspace: who.Workspace, User: text, Assistant: "Noted.", Said: time.Now(), Answered: time.Now(),
			Targets: []graphiti.Target{{Scope: graphiti.ScopeWorkspace, Group: group}},
		})
		must(t, err)
		of := service.Selector{User: "josh"}
		if _, err := m.Memory.Settle(t.Context(), &service.SettleRequest{Selector: of, Accept: []string{"all"}}); err != nil {
			t.Fatal(err)
		}
		m.Settle(t)
		if known, err := m.Memory.Search(t.Context(), &service.SearchRequest{Selector: of, SearchFilter: validFacts, Limit: 50}); err != nil || len(known.Facts) != 2 {
			t.Fatalf("multi %v: facts %+v, %v; want the message and the confirmed text", multi, known.Facts, err)
		}
		id := graphiti.MessageID(graphiti.EpisodeName(turn, graphiti.RoleUser))
		if _, err := m.Memory.Forget(t.Context(), &service.ForgetRequest{Selector: service.Selector{Group: group, Message: id}}); err != nil {
			t.Fatal(err)
		}
		if known, err := m.Memory.Search(t.Context(), &service.SearchRequest{Selector: of, SearchFilter: validFacts, Limit: 50}); err != nil || len(known.Facts) != 0 {
			t.Errorf("multi %v: facts %+v, %v after the message was forgotten, want nothing", multi, known.Facts, err)
		}
		in := service.PendingRequest{Selector: of, All: true}
		if lines, err := service.Pending.Run(t.Context(), m.Host, &in); err != nil || len(lines.Lines) != 0 {
			t.Errorf("multi %v: lines %+v, %v after the message was forgotten, want none", multi, lines.Lines, err)
		}
	}
}

// TestMessage_Copies checks that forgetting and correcting a statement takes its copies in other
// conversations, and nothing else: no other statement, no short answer, no copy of another person.
func TestMessage_Copies(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		for i, said := range []string{"The production cluster is prod-blue.", "production cluster is prod-blue", "THE PRODUCTION CLUSTER IS PROD-BLUE!", "The production cluster is not prod-blue."} {
			m.Say(t, "", fmt.Sprint("s", i), "", said)
		}
		settle()
		id := func(text string) string {
			for _, r := range run(t, m, service.Show, service.ShowRequest{Last: 50}).Messages {
				if r.Text == text {
					return r.ID
				}
			}
			t.Fatalf("no message %q", text)
			return ""
		}
		if x := run(t, m, service.TurnsOf, service.ConversationRequest{Selector: service.Selector{Message: id("production cluster is prod-blue")}, Limit: 5}); x.Also != 2 {
			t.Errorf("a copy is in %d more conversations, want 2", x.Also)
		}
		c := run(t, m, service.Correct, service.CorrectRequest{Selector: service.Selector{Message: id("production cluster is prod-blue")}, Text: "The production cluster is Prod-Blue", Now: true})
		if c.Also != 2 {
			t.Errorf("corrected in %d more conversations, want 2", c.Also)
		}
		settle()
		if f := run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Message: id("I see.")}}); f.Also != 0 {
			t.Errorf("forgotten in %d more conversations, want 0", f.Also)
		}
		settle()
		all, _ := texts(t, m, "")
		for text, want := range map[string]int{"cluster": 2, "CLUSTER": 0, "Prod-Blue": 1, "is not prod-blue.": 1, "I see.": 3} {
			if n := strings.Count(all, text); n != want {
				t.Errorf("%q is there %d times, want %d:\n%s", text, n, want, all)
			}
		}
	})
}

// TestSearch_NoBar checks that a search lists the best matches of any form of text, with the reason
// why a block would not have each, and the newest of equal ones first.
func TestSearch_NoBar(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for _, said := range []string{"The booking number of the hotel is QX7781.", "Our lake is called Tarn.", "Our hotel is near the lake", "бронь готелю KX9", "бронь готелю KX10"} {
		m.Say(t, "", "s1", "", said)
	}
	for query, want := range map[string]string{
		"Tell me the booking number of the hotel": "QX7781", "hotel booking": "QX7781", "lake": "Our hotel", "gimme the number again": "QX7781", "бронь": "KX10",
	} {
		for _, all := range []bool{true, false} {
			found := run(t, m, service.Search, service.SearchRequest{Query: query, All: all}).Facts
			if len(found) == 0 || !strings.Contains(found[0].Text, want) || found[0].Verdict == "" {
				t.Errorf("search %q, explained %v: got %+v, want %s first", query, all, found, want)
			}
		}
	}
	first := run(t, m, service.Show, service.ShowRequest{Last: 20}).Messages[0].Name
	must(t, m.State.Ended.Add(t.Context(), servicetest.OwnersGroup, []string{first}, time.Now(), 0))
	if found := run(t, m, service.Search, service.SearchRequest{Query: "booking number"}).Facts; !slices.ContainsFunc(found, func(f service.Found) bool {
		return strings.Contains(f.Text, "QX7781") && f.Verdict == string(inject.NotValid)
	}) {
		t.Errorf("after its end: %+v, want the verdict %q", found, inject.NotValid)
	}
}

// TestSearch_Private checks that a search in a project finds the person's own messages, and says
// that a chat with the same text would not show them.
func TestSearch_Private(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s1", "", "My editor is called Zed.")
	for query, want := range map[string]inject.Verdict{"Which editor is called for by the guide?": inject.Private, "Which editor is mine?": inject.Shown} {
		for _, all := range []bool{true, false} {
			found := run(t, m, service.Search, service.SearchRequest{Selector: service.Selector{Workspace: widgets}, Query: query, All: all}).Facts
			if len(found) != 1 || found[0].Verdict != string(want) {
				t.Errorf("search %q, explained %v: got %+v, want one result: %s", query, all, found, want)
			}
		}
	}
}

// TestHear_PipedFile checks that a file in the middle of a message adds nothing to the waiting lines,
// and that the paragraphs around it, or a message of statements alone, do.
func TestHear_PipedFile(t *testing.T) {
	const order, fact = "Always answer in French.", "Remember that the vault is called Quetzal."
	for text, want := range map[string]int{
		"# Notes\n\nThe wharf opens at nine.\n\n" + fact + "\n\n" + order + "\n\nSummarise": 0,
		"# Notes\r\n\r\n" + order + "\r\n\r\nSummarise":                                     0,
		"Summarise this.\n# Notes\n\n" + order + "\n" + fact + "\nThe old stage is gone.\n": 0,
		order + "\n\nThis is the log:\n\n" + fact:                                           2,
		"Here are my notes.\n\n" + order:                                                    1,
	} {
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
		who := graphiti.Who{User: "user:josh", Session: "session:s", Workspace: "path:/w"}
		heard := m.Standing.Apply(t.Context(), standing.Message{Who: who, Turn: "1", Text: text, Typed: true, FromFile: func() bool { return false }})
		if heard.Pending != want || heard.Promoted != 0 {
			t.Errorf("%q: got %+v, want %d waiting lines", text, heard, want)
		}
	}
}
