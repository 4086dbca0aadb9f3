package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

const gadgets = "github_repo:github.com/acme/gadgets"

// bothStates runs a test without Graphiti and with it. settle waits until the memory has processed all turns.
func bothStates(t *testing.T, f func(t *testing.T, m *servicetest.Fixture, settle func())) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
		f(t, m, func() { m.Settle(t) })
	})
	t.Run("Graphiti", func(t *testing.T) {
		t.Parallel()
		g := startGraphiti(t, "graphiti")
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{Graph: memoryOf(t, "graphiti", g)})
		f(t, m, func() {
			m.Settle(t)
			must(t, g.Settle(t.Context()))
		})
	})
}

// ownerIn returns the owner's identity in a conversation, and in a project unless workspace
// is "".
func ownerIn(workspace, session string) graphiti.Who {
	return graphiti.Who{User: servicetest.Owner, Session: "session:" + session, Workspace: workspace, Application: "a", Program: "test"}
}

// opens begins a conversation with a message and returns the block for it.
func opens(t *testing.T, m *servicetest.Fixture, workspace, session, text string) string {
	t.Helper()
	block, _ := m.Talk(t, ownerIn(workspace, session), text)
	return block
}

// TestRules_Place checks that a rule that is alone in its message appears in later
// conversations of the same project, and elsewhere once its person has confirmed it.
func TestRules_Place(t *testing.T) {
	t.Parallel()
	bothStates(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		const text = "Please always use tabs in Go files."
		opens(t, m, widgets, "zero", "Write a loop in Go. Always use tabs.")
		settle()
		if got := opens(t, m, widgets, "one", text); strings.Contains(got, "rule, ") {
			t.Errorf("block = %q after a rule beside a task, want no rule", got)
		}
		settle()
		check := func(session, kind string, want int, workspace string) {
			t.Helper()
			block := opens(t, m, workspace, session, "hello")
			if got := strings.Count(block, "\n- "+kind+", "+time.Now().Format(time.DateOnly)+": "+text+"\n"); got != want {
				t.Errorf("%q: block = %q has the %s %d times, want %d", workspace, block, kind, got, want)
			}
		}
		check("three", "rule", 1, widgets)
		check("four", "rule", 0, gadgets)
		check("five", "rule", 0, "")
		bob := ownerIn(widgets, "bob's")
		bob.User = "user:bob"
		if got, _ := m.Talk(t, bob, "hello"); got != "" {
			t.Errorf("block of another person = %q, want none", got)
		}
		shown := run(t, m, service.Show, service.ShowRequest{Selector: service.Selector{Workspace: widgets}, Last: 1})
		if len(shown.Card) == 0 || !strings.Contains(shown.Card[0], "Please always use tabs in Go files") {
			t.Errorf("card of the project = %q, want the rule", shown.Card)
		}

		acted(t, m, service.Settle, service.SettleRequest{Accept: []string{"all"}})
		settle()
		check("six", "preference", 1, gadgets)
		check("seven", "preference", 1, "")
		run(t, m, service.Undo, service.UndoRequest{ID: run(t, m, service.History, service.HistoryRequest{Limit: 1}).Changes[0].ID})
		check("eight", "preference", 0, gadgets)
		check("nine", "rule", 1, widgets)
		forgetSession(t, m, "one")
		if got := opens(t, m, widgets, "ten", "hello"); got != "" {
			t.Errorf("block = %q after the conversation of the rule was forgotten, want none", got)
		}
	})
}

// TestRules_RepeatedMessage checks that a repeated rule still applies.
func TestRules_RepeatedMessage(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	const rule = "Always answer with a citation."
	opens(t, m, "", "one", rule)
	if got := opens(t, m, "", "two", "hello"); !strings.Contains(got, rule) {
		t.Errorf("block = %q, want the rule", got)
	}
	opens(t, m, "", "three", rule)
	if got := opens(t, m, "", "four", "hello"); strings.Count(got, rule) != 1 {
		t.Errorf("block = %q after the message was sent again, want the rule once", got)
	}
}

// TestRules_OneProject checks that a project's rule appears neither in another project nor
// outside of projects, and can be forgotten.
func TestRules_OneProject(t *testing.T) {
	t.Parallel()
	bothStates(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		const rule = "コミットメッセージは必ず日本語で書いてください。"
		opens(t, m, widgets, "one", rule)
		settle()
		for workspace, want := range map[string]int{widgets: 1, gadgets: 0} {
			if got := opens(t, m, workspace, "in "+workspace, "hello"); strings.Count(got, "rule, ") != want {
				t.Errorf("%s: block = %q, want %d rules", workspace, got, want)
			}
		}
		if got := opens(t, m, "", "private", "hello"); got != "" {
			t.Errorf("block outside of projects = %q, want none", got)
		}
		if shown := run(t, m, service.Show, service.ShowRequest{Last: 1}); len(shown.Card) > 0 {
			t.Errorf("card outside of projects = %q, want none", shown.Card)
		}
		endLine(t, m, service.Selector{Workspace: widgets}, rule)
		if got := opens(t, m, widgets, "three", "hello"); strings.Contains(got, "rule, ") {
			t.Errorf("block = %q after the rule was taken off, want no rule", got)
		}
	})
}

// endLine ends the line of a memory with a text.
func endLine(t *testing.T, m *servicetest.Fixture, s service.Selector, text string) {
	t.Helper()
	for _, l := range run(t, m, service.Pending, service.PendingRequest{Selector: s, All: true}).Lines {
		if l.Text == text {
			acted(t, m, service.Settle, service.SettleRequest{Selector: s, End: []string{l.ID}})
			return
		}
	}
	t.Fatalf("no line %q", text)
}

// TestRemember checks that a text to remember is found at once in its project, and that a
// personal text is found in another project once its person has confirmed it.
func TestRemember(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ language, project, own, asks, asksOwn, finds, findsOwn string }{
		{"English", "Remember that the staging server is called otter.", "Please remember that I prefer Oolong in the morning.", "What is the staging server called?", "What should we serve?", "server is called otter", "Oolong"},
		{"German", "Merk dir, dass der Testserver Otter heißt.", "Merk dir bitte, dass ich Oolong lieber mag.", "Wie heißt der Testserver?", "Was servieren wir?", "Testserver Otter", "Oolong"},
		{"French", "Retiens que le serveur de test s'appelle Loutre.", "Retiens que je préfère le Oolong.", "Comment s'appelle le serveur de test ?", "Que servir ?", "s'appelle Loutre", "Oolong"},
		{"Spanish", "Recuerda que el servidor se llama Nutria.", "Recuerda que prefiero el Oolong.", "¿Cómo se llama el servidor?", "¿Qué servimos?", "llama Nutria", "Oolong"},
		{"Italian", "Ricorda che il servizio si chiama Lontra.", "Ricorda che preferisco il tè Oolong.", "Come si chiama il servizio?", "Cosa serviamo?", "chiama Lontra", "Oolong"},
		{"Portuguese", "Lembre-se de que o servidor se chama Lontra.", "Lembra-te que eu prefiro Oolong.", "Como se chama o servidor?", "O que servimos?", "chama Lontra", "Oolong"},
		{"Dutch", "Onthoud dat de server Otter heet.", "Onthoud dat ik liever Oolong drink.", "Hoe heet de server?", "Wat serveren we?", "Otter heet", "Oolong"},
		{"Russian", "Запомни, что сервер называется Выдра.", "Запомни, что я люблю Oolong.", "Как называется сервер?", "Что подать?", "называется Выдра", "Oolong"},
		{"Polish", "Zapamiętaj, że serwer nazywa się Wydra.", "Zapamiętaj, że wolę Oolong.", "Jak nazywa się serwer?", "Co podajemy?", "nazywa się Wydra", "Oolong"},
		{"Japanese", "サーバーの名前はカワウソだと覚えておいてください。", "覚えておいて：私はOolongが好きです。", "サーバーの名前は何ですか？", "何を出しますか？", "カワウソだ", "Oolong"},
		{"Chinese", "请记住：测试服务器叫水獭。", "记住我喜欢喝Oolong。", "测试服务器叫什么？", "我们上什么？", "服务器叫水獭", "Oolong"},
		{"Korean", "기억해 줘: 테스트 서버 이름은 수달이야.", "기억해 줘: 나는 Oolong을 좋아해.", "테스트 서버 이름이 뭐야?", "무엇을 낼까?", "이름은 수달이야", "Oolong"},
	} {
		t.Run(tc.language, func(t *testing.T) {
			t.Parallel()
			m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
			for text, want := range map[string]inject.Heard{tc.project: {Promoted: 1}, tc.own: {Promoted: 1, Pending: 1}} {
				if _, got := m.Talk(t, ownerIn(widgets, text), text); got != want {
					t.Errorf("%s: heard %+v, want %+v", text, got, want)
				}
			}
			if got := opens(t, m, widgets, "three", tc.asks); !strings.Contains(got, tc.finds) {
				t.Errorf("block = %q in another conversation, want %q in it", got, tc.finds)
			}
			if got := opens(t, m, widgets, "four", "hello"); strings.Contains(got, "rule, ") {
				t.Errorf("block = %q, want no rule for a fact", got)
			}
			if got := opens(t, m, gadgets, "five", tc.asksOwn); strings.Contains(got, tc.findsOwn) || strings.Contains(got, tc.finds) {
				t.Errorf("block = %q in another project, want nothing of it", got)
			}
			done := run(t, m, service.Settle, service.SettleRequest{Accept: []string{"all"}})
			if len(done.Lines) != 1 || done.Lines[0].State != card.Confirmed {
				t.Fatalf("Settle = %+v, want one confirmed line", done)
			}
			m.Settle(t)
			if got := opens(t, m, gadgets, "six", tc.asksOwn+" "+tc.findsOwn); strings.Count(got, tc.findsOwn) != 1 || strings.Contains(got, tc.finds) {
				t.Errorf("block = %q in another project after it was confirmed, want %q once", got, tc.findsOwn)
			}
		})
	}
}

// TestRemember_Decided checks that a text that its person has accepted or rejected does not
// become pending again.
func TestRemember_Decided(t *testing.T) {
	t.Parallel()
	const text = "Please remember that I prefer Oolong in the morning."
	for name, decide := range map[string]service.SettleRequest{
		"accepted": {Accept: []string{"all"}},
		"rejected": {Reject: []string{"all"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
			if _, got := m.Talk(t, ownerIn(widgets, "one"), text); got != (inject.Heard{Promoted: 1, Pending: 1}) {
				t.Fatalf("heard %+v, want one pending", got)
			}
			run(t, m, service.Settle, decide)
			if _, got := m.Talk(t, ownerIn(widgets, "two"), text); got.Pending > 0 {
				t.Errorf("heard %+v after the decision, want none pending", got)
			}
		})
	}
}

// TestSettle_OneLine checks that an accepted rule is one line, which applies everywhere, in its
// person's words of the decision, and is gone with the message that accepting it stored.
func TestSettle_OneLine(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Talk(t, ownerIn(widgets, "one"), "Never commit to main.")
	id := run(t, m, service.Pending, service.PendingRequest{Selector: service.Selector{Workspace: widgets}, All: true}).Lines[0].ID
	run(t, m, service.Settle, service.SettleRequest{Selector: service.Selector{Workspace: widgets}, Accept: []string{id}, Text: "Never commit to trunk."})
	m.Settle(t)
	if n := strings.Count(string(exportAll(t, m)), `"where":"rule"`); n != 1 {
		t.Errorf("%d lines are stored, want one", n)
	}
	if got := opens(t, m, widgets, "two", "hello"); !strings.Contains(got, "Never commit to trunk.") || strings.Contains(got, "main") {
		t.Errorf("block = %q, want the rule as its person edited it", got)
	}
	for _, msg := range run(t, m, service.Show, service.ShowRequest{Last: 10}).Messages {
		if strings.Contains(msg.Text, "trunk") {
			run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Message: msg.ID}})
		}
	}
	if got := opens(t, m, widgets, "three", "hello"); strings.Contains(got, "Never commit") || strings.Contains(string(exportAll(t, m)), `"where":"rule"`) {
		t.Errorf("block = %q after the message is forgotten, want no rule", got)
	}
}

// TestRemember_Acts checks that a text that names a command to run stays pending.
func TestRemember_Acts(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	const lint = "the linter is started with make -s lint"
	if _, got := m.Talk(t, ownerIn(widgets, "one"), "Remember that "+lint+"."); got != (inject.Heard{Pending: 1}) {
		t.Errorf("heard %+v, want one pending", got)
	}
	if got := opens(t, m, widgets, "two", "hello"); strings.Contains(got, "rule, ") {
		t.Errorf("block = %q, want no rule", got)
	}
}

// TestHear_RoutineRule checks that a complaint about everyday work stays pending even if it
// is worded as a rule, and that a rule may concern everyday work.
func TestHear_RoutineRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]inject.Heard{
		"always the same story with this file, try it once more": {Pending: 1},
		"always use tabs for indentation in this project":        {Promoted: 1},
	} {
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
		if _, got := m.Talk(t, ownerIn(widgets, "one"), text); got != want {
			t.Errorf("%q: heard %+v, want %+v", text, got, want)
		}
	}
}

// TestStanding_Full checks that a full list of lines says so, and evicts none: of lines that apply in
// their place, of pending ones, and of confirmed ones. Past lines do not count.
func TestStanding_Full(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	who, in := ownerIn(widgets, "s"), service.Selector{Workspace: widgets}
	name := func(i int) string { return string(rune('a'+i%26)) + string(rune('a'+i/26)) }
	rule := func(i int) string {
		return fmt.Sprintf("In this repo, never call %salpha from %sbeta.", name(i), name(i))
	}
	waiting := func(i int) string {
		return fmt.Sprintf("Eve said always put %sgamma under %sdelta in this repo.", name(i), name(i))
	}
	states := func() map[card.LineState]int {
		got := make(map[card.LineState]int)
		for _, l := range run(t, m, service.Pending, service.PendingRequest{All: true, Selector: in}).Lines {
			got[card.LineState(l.State)]++
		}
		return got
	}
	for i := range card.MaxLines {
		m.Hear(t, who, rule(i))
	}
	for i := range card.MaxWaiting {
		m.Hear(t, who, waiting(i))
	}
	for _, text := range []string{rule(card.MaxLines), waiting(card.MaxWaiting)} {
		if h := m.Hear(t, who, text); h.Full != 1 || h.Promoted != 0 || h.Pending != 0 {
			t.Errorf("%s: heard %+v, want a full list", text, h)
		}
	}
	if got := states(); got[card.Local] != card.MaxLines || got[card.Pending] != card.MaxWaiting {
		t.Fatalf("got %v, want two full lists", got)
	}
}

// TestForgetThat_Earlier checks that a forget waits for the earlier turns of its conversation.
func TestForgetThat_Earlier(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	who, text := ownerIn(widgets, "s"), "Forget that the staging server is called otter."
	h := m.Standing.Apply(t.Context(), standing.Message{
		Who: who, Generation: m.State.Generations.Now(), Turn: "b", Text: text, Typed: true, FromFile: func() bool { return false },
		Earlier: func(context.Context) {
			m.Say(t, servicetest.Owner, "s", widgets, "Remember that the staging server is called otter.")
		},
	})
	if h.Ended != 1 || h.Unmatched != 0 {
		t.Errorf("heard %+v, want one ended statement", h)
	}
}

// TestPending_ForgetThat checks that a waiting text to forget lists the statements to end.
func TestPending_ForgetThat(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	here, there := graphiti.Who{User: servicetest.Owner, Session: "a", Application: "codex"}, graphiti.Who{User: servicetest.Owner, Session: "b", Application: "claude"}
	m.Talk(t, here, "Remember that my cat is called Miso.")
	m.Talk(t, there, "Remember that my old cat is called Miso.")
	if _, h := m.Talk(t, here, "Forget that my cat is called Miso."); h.Ended != 1 || h.Pending != 1 {
		t.Fatalf("heard %+v, want one ended and one that waits", h)
	}
	p := run(t, m, service.Pending, service.PendingRequest{Selector: service.Selector{User: servicetest.Owner}})
	for _, l := range p.Lines {
		if l.Kind == card.KindForget && (len(l.Ends) != 1 || !strings.Contains(l.Ends[0], "old")) {
			t.Errorf("line %+v, want the statement of the other place alone", l)
		}
	}
}

// TestForgetThat checks that "Forget that ..." in a chat ends the matching statements of
// the project. They stay in the memory, marked as ended, and can be restored.
func TestForgetThat(t *testing.T) {
	t.Parallel()
	bothStates(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		say := func(session, text string) inject.Heard {
			_, heard := m.Talk(t, ownerIn(widgets, session), text)
			return heard
		}
		say("one", "Remember that the staging server is called otter.")
		say("two", "Always answer in German.")
		settle()
		if got := opens(t, m, widgets, "three", "What is the staging server called?"); !strings.Contains(got, "otter") || !strings.Contains(got, "German") {
			t.Fatalf("block = %q before, want the server and the rule", got)
		}
		if heard := say("five", "What is an otter? Forget that the staging server is called otter."); heard != (inject.Heard{Pending: 1}) {
			t.Errorf("heard %+v for a message that says more, want one to wait", heard)
		}
		if heard := say("five", "Forget that the coffee machine is called Brutus."); heard != (inject.Heard{Unmatched: 1, Forgets: true}) {
			t.Errorf("heard %+v for a text that nobody said, want it to be unmatched", heard)
		}
		settle() // this message matches the text to forget, too
		for session, text := range map[string]string{"six": "Forget that the staging server is called otter.", "seven": "Forget that you always answer in German."} {
			if heard := say(session, text); heard.Ended == 0 {
				t.Errorf("%s: heard %+v, want a statement ended", text, heard)
			}
		}
		if got := opens(t, m, widgets, "eight", "What is the staging server called?"); strings.Contains(got, "otter") || strings.Contains(got, "German") {
			t.Errorf("block = %q after, want neither", got)
		}
		list := run(t, m, service.Search, service.SearchRequest{Selector: service.Selector{Workspace: widgets}, SearchFilter: service.SearchFilter{Kind: service.KindFact, State: service.Ended}, Limit: 50})
		restored := 0
		for _, k := range list.Facts {
			if k.Origin == service.KindFact || !strings.HasPrefix(k.Text, "Remember") {
				continue
			}
			restored++
			run(t, m, service.ChangeMany, service.ManyRequest{Selector: service.Selector{Workspace: widgets}, Do: "restore", Messages: []string{k.ID}})
		}
		if restored != 1 {
			t.Fatalf("facts = %+v, want one ended statement", list.Facts)
		}
		if got := opens(t, m, widgets, "nine", "What is the staging server called?"); !strings.Contains(got, "otter") {
			t.Errorf("block = %q after it was restored, want the server", got)
		}
	})
}

// TestSettle_To checks that a rule of all projects is limited to one, with another text if there is one,
// and that undo makes it apply everywhere again.
func TestSettle_To(t *testing.T) {
	t.Parallel()
	const gadgets = "github_repo:github.com/acme/gadgets"
	for name, rule := range map[string]func(m *servicetest.Fixture){
		"a pinned text": func(m *servicetest.Fixture) {
			run(t, m, service.Promote, service.PromoteRequest{Promotion: service.Promotion{Kind: "preference", Text: "Commits are signed."}})
		},
		"a sentence in a chat": func(m *servicetest.Fixture) {
			m.Talk(t, graphiti.Who{User: servicetest.Owner, Session: "a", Application: "codex"}, "Always remember that commits are signed.")
			run(t, m, service.Settle, service.SettleRequest{Accept: []string{"all"}})
		},
	} {
		m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
		rule(m)
		m.Settle(t)
		cards := func() (list []string) {
			for _, project := range []string{widgets, gadgets} {
				list = append(list, strings.Join(run(t, m, service.Show, service.ShowRequest{Selector: service.Selector{Workspace: project}, Last: 10}).Card, "|"))
			}
			return list
		}
		lines := run(t, m, service.Pending, service.PendingRequest{All: true}).Lines
		if len(lines) != 1 || !lines[0].OnCard {
			t.Fatalf("%s: %+v", name, lines)
		}
		out, _, err := service.Settle.Call(t.Context(), m.Host, service.Operator, func(in any) error {
			s := in.(*service.SettleRequest) //nolint:forcetypeassert // the input of Settle
			s.Accept, s.To, s.Text = []string{lines[0].ID}, widgets, "Commits are signed with SSH."
			return nil
		}, nil)
		must(t, err)
		m.Settle(t)
		if got := cards(); !strings.Contains(got[0], "with SSH") || strings.Count(got[0], "signed") != 1 || strings.Contains(got[1], "signed") {
			t.Errorf("%s, limited: %q", name, got)
		}
		if found := run(t, m, service.Search, service.SearchRequest{Selector: service.Selector{Workspace: gadgets}, Query: "Are commits signed?"}); name == "a pinned text" && len(found.Facts) > 0 && found.Facts[0].Omitted() == "" {
			t.Errorf("%s: another project recalls %+v", name, found.Facts)
		}
		run(t, m, service.Undo, service.UndoRequest{ID: out.(service.Settled).Undo}) //nolint:forcetypeassert // the output of Settle
		m.Settle(t)
		if got := cards(); strings.Contains(got[0], "SSH") || !strings.Contains(got[1], "ommits are signed") {
			t.Errorf("%s, undone: %q", name, got)
		}
		for _, bad := range []service.SettleRequest{{Accept: []string{"all"}, To: widgets}, {Reject: []string{lines[0].ID}, To: widgets}} {
			if _, err := m.Memory.Settle(t.Context(), &bad); err == nil {
				t.Errorf("%s: Settle(%+v): no error", name, bad)
			}
		}
	}
}

// TestPending_OfProject checks that a text promoted in a project belongs to the project.
func TestPending_OfProject(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for scope, want := range map[string]string{"workspace": "the project", "user": "you, everywhere"} {
		me := service.Selector{Workspace: widgets}
		if _, err := m.Memory.Promote(t.Context(), &service.PromoteRequest{Selector: me, Promotion: service.Promotion{Kind: "decision", Scope: scope, Text: "Deploys of a " + scope + " are on Tuesdays."}}); err != nil {
			t.Fatal(err)
		}
		p := run(t, m, service.Pending, service.PendingRequest{Selector: me, All: true})
		if got := p.Lines[0].Accepted(); got != want {
			t.Errorf("a decision of scope %s applies to %q, want %q", scope, got, want)
		}
	}
}
