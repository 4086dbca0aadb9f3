package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// TestSearch_Filter checks that a filter selects stored texts of all projects, in order.
func TestSearch_Filter(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for i, s := range []struct{ day, client, workspace, said, answered string }{
		{"2026-11-20", "claude-code", "github_repo:github.com/acme/infra", "The VPN gateway is gw-7.", "Noted, the gateway has a name."},
		{"2026-11-24", "codex_cli_rs", "github_repo:github.com/acme/billing", "The nightly job writes the invoices.", "I moved the nightly job to three."},
		{"2026-11-25", "codex_cli_rs", "", "Please tell me a joke about a VPN.", "No."},
		{"2026-11-26", "claude-code", "", "我们的数据库在法兰克福。", "好的。"},
	} {
		at, err := time.Parse(time.DateOnly, s.day)
		must(t, err)
		one := turn(strings.Repeat(string(rune('a'+i)), 32), "s"+s.day, s.said, s.answered)
		one.Said, one.Answered, one.Client, one.Workspace = at.Add(9*time.Hour), at.Add(10*time.Hour), s.client, s.workspace
		if s.workspace != "" {
			one.Targets = graphiti.Namer{Raw: true}.Writes(graphiti.Who{User: servicetest.Owner, Workspace: s.workspace})
		}
		add(t, m, func() { m.Settle(t) }, one)
	}
	if _, err := m.Memory.Promote(t.Context(), &service.PromoteRequest{Promotion: service.Promotion{Kind: "preference", Text: "Always use the VPN."}}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
	type f = service.SearchFilter
	for name, tc := range map[string]struct {
		query  string
		filter f
		want   []string // beginnings of the texts
	}{
		"all words first":    {"VPN gateway", f{Everything: true, Kind: "message"}, []string{"The VPN gateway", "Always use", "Please tell", "Noted, the"}},
		"newest":             {"vpn", f{Newest: true, Kind: "message"}, []string{"Always use", "Please tell", "The VPN"}},
		"newest, both words": {"vpn gateway", f{Newest: true}, []string{"The VPN"}},
		"client":             {"", f{Client: "Codex"}, []string{"No.", "Please tell", "I moved", "The nightly"}},
		"client and day":     {"job", f{Client: "codex", Since: "2026-11-24", Until: "2026-11-24"}, []string{"I moved", "The nightly"}},
		"speaker":            {"nightly", f{Speaker: "model"}, []string{"I moved"}},
		"span of hours":      {"", f{Since: "2026-11-24T09:30:00Z", Until: "2026-11-25T09:30:00Z"}, []string{"Please tell", "I moved"}},
		"rule":               {"vpn", f{Kind: "rule"}, []string{"Always use"}},
		"no such state":      {"vpn", f{State: "waiting"}, nil},
		"without spaces":     {"数据库", f{Everything: true, Kind: "message"}, []string{"我们的"}},
	} {
		got := run(t, m, service.Search, service.SearchRequest{Query: tc.query, SearchFilter: tc.filter, Limit: 50})
		var texts []string
		for _, one := range got.Facts {
			if !one.ByMeaning {
				texts = append(texts, one.Text)
			}
			for _, mark := range one.Marks {
				if !strings.Contains(strings.ToLower(tc.query), strings.ToLower(one.Text[mark[0]:mark[1]])) {
					t.Errorf("%s: %q is marked in %q", name, one.Text[mark[0]:mark[1]], one.Text)
				}
			}
			if tc.query != "" && len(one.Marks) == 0 && !one.ByMeaning {
				t.Errorf("%s: nothing is marked in %q", name, one.Text)
			}
		}
		ok := len(texts) == len(tc.want)
		for i := range texts {
			ok = ok && strings.HasPrefix(texts[i], tc.want[i])
		}
		if !ok {
			t.Errorf("%s: got %q, want %q", name, texts, tc.want)
		}
	}
	for _, bad := range []service.SearchRequest{
		{SearchFilter: f{Kind: "x"}}, {SearchFilter: f{Speaker: "x"}}, {SearchFilter: f{State: "x"}}, {SearchFilter: f{Since: "x"}}, {SearchFilter: f{Everything: true}, All: true},
	} {
		bad.Limit = 50
		if _, err := m.Memory.Search(t.Context(), &bad); err == nil {
			t.Errorf("Search(%+v): no error", bad)
		}
	}
}

// TestSearch_FilterMarks checks that a result shows a long text around the first word of the query.
// TestSearch_Order checks that of texts with as many words, rules come first, and then questions and ended texts last.
func TestSearch_Order(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s1", "", "Never restart the nightly job.")
	m.Say(t, "", "s2", "", "The nightly job runs at three.")
	m.Say(t, "", "s3", "", "When does the nightly job run?")
	m.Say(t, "", "s4", "", "The job is done.")
	m.Say(t, "", "s5", "", "The nightly job runs at four.")
	all := run(t, m, service.Search, service.SearchRequest{Query: "four", SearchFilter: service.SearchFilter{Kind: "message"}, Limit: 1}).Facts
	run(t, m, service.ChangeMany, service.ManyRequest{Do: "end", Messages: []string{all[0].ID}})
	if _, err := m.Memory.Promote(t.Context(), &service.PromoteRequest{Promotion: service.Promotion{Kind: "preference", Text: "Log each nightly job."}}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
	for name, tc := range map[string]struct {
		newest bool
		query  string
		want   []string
	}{
		"best first": {false, "nightly job", []string{"Log each", "The nightly job runs at three", "When does", "The nightly job runs at four", "The job"}},
		"newest":     {true, "nightly job", []string{"The nightly job runs at four", "When does", "The nightly job runs at three", "Never"}},
		"no words":   {false, "", []string{"The nightly job runs at four", "The job", "When does", "The nightly job runs at three", "Never"}},
	} {
		got := run(t, m, service.Search, service.SearchRequest{Query: tc.query, SearchFilter: service.SearchFilter{Everything: true, Newest: tc.newest}, Limit: 50})
		last := -1
		for _, want := range tc.want {
			at := slices.IndexFunc(got.Facts, func(f service.Found) bool { return strings.HasPrefix(f.Text, want) })
			if at <= last {
				t.Errorf("%s: %q is at %d, want it after %d", name, want, at, last)
			}
			last = at
		}
	}
}

// slow is a searcher that does not answer.
type slow struct{}

func (slow) Search(ctx context.Context, _ []string, _ string, _ int) ([]graphiti.Fact, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestSearch_WithoutMeaning checks that results by words do not wait for the search by meaning.
func TestSearch_WithoutMeaning(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s1", "", "The nightly job runs at three.")
	m.Backend.Searcher = slow{}
	if got := run(t, m, service.Search, service.SearchRequest{Query: "nightly", SearchFilter: service.SearchFilter{Everything: true}, Limit: 5}); len(got.Facts) != 1 {
		t.Errorf("got %v", got.Facts)
	}
}

func TestSearch_FilterMarks(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s", "", strings.Repeat("So many ünrelated words. ", 40)+"The heron is grey. "+strings.Repeat("And so on. ", 90))
	got := run(t, m, service.Search, service.SearchRequest{Query: "heron", SearchFilter: service.SearchFilter{Everything: true}, Limit: 5}).Facts
	if len(got) != 1 || len(got[0].Marks) != 1 || !strings.HasPrefix(got[0].Text, "…") || !strings.HasSuffix(got[0].Text, "…") || len(got[0].Text) > 700 {
		t.Fatalf("got %+v", got)
	}
	if m := got[0].Marks[0]; got[0].Text[m[0]:m[1]] != "heron" {
		t.Errorf("%q is marked", got[0].Text[m[0]:m[1]])
	}
}

// TestSearch_LastShown checks that a fact has the latest turn whose block had it or a copy of it, and that
// a person's search leaves out the turns of others.
func TestSearch_LastShown(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	settle := func() { m.Settle(t) }
	first, again := turn(strings.Repeat("1a", 16), "s1", "The cat is called Miso.", "Good."), turn(strings.Repeat("1b", 16), "s2", "The cat is called Miso.", "Yes.")
	again.Said = again.Said.Add(time.Hour)
	other := turn(strings.Repeat("1c", 16), "s1", "The dog is called Rex.", "Good.")
	asked, later := turn(strings.Repeat("2a", 16), "s3", "What is the cat called?", "Miso."), turn(strings.Repeat("2b", 16), "s4", "And the cat?", "Miso.")
	later.Client = "codex"
	add(t, m, settle, first, again, other, asked, later)
	shown := func(id string, of ...ledger.Turn) {
		var found []graphiti.Fact
		for _, one := range of {
			found = append(found, graphiti.Fact{Text: one.User, Episode: graphiti.EpisodeName(one.ID, graphiti.RoleUser), Group: servicetest.OwnersGroup, Strength: 0.9, Weighed: true})
		}
		decided(t, m, id, pieces(t, m, "What is the cat called?", found...), servicetest.OwnersGroup)
	}
	shown(asked.ID, first)
	shown(later.ID, first)
	shown(strings.Repeat("2c", 16), again) // it is not stored
	filter := service.SearchFilter{Kind: service.KindFact, State: "valid"}
	for _, f := range run(t, m, service.Search, service.SearchRequest{SearchFilter: filter, Limit: 50}).Facts {
		got := f.LastShown
		if f.Text == other.User && got != nil || f.Text == first.User && (got == nil || got.Turn != strings.Repeat("2c", 16) || got.Time == "" || got.Conversation != "") {
			t.Errorf("%s: %+v", f.Text, got)
		}
	}
	must(t, helptest.ErrorOf(m.State.Decisions.Forget(t.Context(), servicetest.OwnersGroup)))
	shown(strings.Repeat("2d", 16), other)
	for user, want := range map[string]int{"josh": 1, "ann": 0} {
		out, _, err := service.Search.Call(t.Context(), m.Host, service.Caller{Own: service.Selector{User: user}}, func(in any) error {
			of := in.(*service.SearchRequest) //nolint:forcetypeassert // the input of Search
			of.SearchFilter, of.Limit = filter, 50
			return nil
		}, nil)
		n := 0
		for _, f := range out.(service.Searched).Facts { //nolint:forcetypeassert // the output of Search
			if f.LastShown != nil {
				n++
			}
		}
		if n != want || err != nil {
			t.Errorf("%s sees %d shown facts (%v), want %d", user, n, err, want)
		}
	}
}

// TestSearch_Copies checks that a statement of several conversations is one result, also with a limit, and that
// its IDs select all copies in all memories.
func TestSearch_Copies(t *testing.T) {
	const widgets, gears = "github_repo:github.com/acme/widgets", "github_repo:github.com/acme/gears"
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for i, where := range []string{"", "", widgets, gears} {
		m.Say(t, "", fmt.Sprintf("s%d", i), where, "The heron sleeps in the boathouse.")
		m.Say(t, "", fmt.Sprintf("s%d", i), where, "Yes, please.")
	}
	m.Say(t, "", "s9", "", "The heron sleeps in the boathouse.")
	m.Say(t, "", "s9", "", "The heron eats in the harbor.")
	find := func(limit int, f service.SearchFilter) service.Searched {
		return run(t, m, service.Search, service.SearchRequest{Query: "heron", SearchFilter: f, Limit: limit})
	}
	var ids []string
	for name, f := range map[string]service.SearchFilter{"message": {Kind: "message"}, "fact": {Kind: service.KindFact}, "newest": {Newest: true, Kind: "message"}} {
		if got := find(1, f); got.All != 2 || len(got.Facts) != 1 {
			t.Errorf("%s: %d of %d results, want one of two", name, len(got.Facts), got.All)
		}
		for _, one := range find(50, f).Facts {
			if !strings.Contains(one.Text, "boathouse") {
				continue
			}
			if ids = strings.Fields(one.ID); one.Said != 5 || one.AtLeast || len(ids) != 3 || !strings.Contains(one.In, "acme/widgets") || !strings.Contains(one.In, "acme/gears") {
				t.Errorf("%s: said in %d conversations, in %s, ids %q; want five, in three memories", name, one.Said, one.In, ids)
			}
		}
	}
	if got := run(t, m, service.Search, service.SearchRequest{Query: "yes please", SearchFilter: service.SearchFilter{Kind: "message", Speaker: "person"}, Limit: 50}); len(got.Facts) != 4 {
		t.Errorf("%d results for an answer, want each of four", len(got.Facts))
	}
	for _, one := range find(50, service.SearchFilter{Kind: "message", Since: "2020-01-01"}).Facts {
		if one.AtLeast != (one.Said > 0) {
			t.Errorf("%q: said in %d conversations since a day, at least: %v; want a lower bound", one.Text, one.Said, one.AtLeast)
		}
	}
	acted(t, m, service.Correct, service.CorrectRequest{Selector: service.Selector{Message: strings.Join(ids, " ")}, Text: "The heron sleeps in the reeds."})
	m.Settle(t)
	if before, after := run(t, m, service.History, service.HistoryRequest{Limit: 1}).Changes[0].Texts(); len(before) != 1 || len(after) != 1 {
		t.Errorf("the history has the texts %q and %q, want each once", before, after)
	}
	for state, want := range map[string]string{service.Valid: "reeds", service.Ended: "boathouse"} {
		got := find(50, service.SearchFilter{Kind: "message", State: state}).Facts
		if i := slices.IndexFunc(got, func(f service.Found) bool { return strings.Contains(f.Text, want) }); i < 0 || len(strings.Fields(got[i].ID)) != 3 {
			t.Errorf("%s after a correction: %+v, want one result in three memories", state, got)
		}
	}
}

// TestSearch_SharedCopies checks that a statement of two people is one result, and that its IDs select
// both messages, but each ID only its own.
func TestSearch_SharedCopies(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for _, user := range []string{"josh", "ann"} {
		m.Say(t, user, "s-"+user, "both", "The heron sleeps in the boathouse.")
	}
	valid := func() []service.Found {
		return run(t, m, service.Search, service.SearchRequest{Selector: service.Selector{User: "josh"}, SearchFilter: service.SearchFilter{Kind: service.KindFact, State: service.Valid}, Limit: 50}).Facts
	}
	end := func(ids ...string) {
		acted(t, m, service.ChangeMany, service.ManyRequest{Selector: service.Selector{User: "josh"}, Do: "end", Messages: ids})
	}
	for n := 2; n >= 0; n-- {
		list := valid()
		if n == 0 && len(list) == 0 {
			break
		}
		if n == 0 || len(list) != 1 || len(strings.Fields(list[0].ID)) != n || n == 2 && list[0].Said != 2 {
			t.Fatalf("%d messages: got %+v, want one result with their IDs", n, list)
		}
		end(strings.Fields(list[0].ID)[0])
	}
	m.Say(t, "josh", "t-josh", "both", "The otter sleeps in the reeds.")
	m.Say(t, "ann", "t-ann", "both", "The otter sleeps in the reeds.")
	end(valid()[0].ID)
	if list := valid(); len(list) > 0 {
		t.Errorf("after the end of both messages: %+v", list)
	}
}

// TestSearch_FactSource checks that a fact has the client and the conversation of the message that it is from.
func TestSearch_FactSource(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	said := turn(strings.Repeat("1a", 16), "s1", "About our ports: 5001.", "Good.")
	said.Client = "codex"
	add(t, m, func() { m.Settle(t) }, said)
	d, _ := m.Backend.Distiller()
	fact := graphiti.Distilled{Name: "graphiti.f", Text: "The port is 5001.", Role: graphiti.RoleUser, Sources: []string{graphiti.EpisodeName(said.ID, graphiti.RoleUser)}, Since: said.Said}
	must(t, helptest.ErrorOf(d.RestoreDistilled(t.Context(), servicetest.OwnersGroup, []graphiti.Distilled{fact})))
	list := run(t, m, service.Search, service.SearchRequest{SearchFilter: service.SearchFilter{Kind: service.KindFact, Client: "codex"}, Limit: 50}).Facts
	for i := range list {
		if list[i].Client != "codex" || list[i].Conversation != said.OfSession() {
			t.Errorf("got %+v, want the client and the conversation %s", list[i], said.OfSession())
		}
	}
	if len(list) != 2 || list[0].Text != said.User || list[1].Text != fact.Text {
		t.Errorf("got %+v, want the statement and the fact", list)
	}
}

// TestSearch_ForgetThat checks that a waiting text to forget begins with "Forget that", and that an
// accepted one is omitted.
func TestSearch_ForgetThat(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	me := service.Selector{User: servicetest.Owner}
	if _, err := m.Memory.Promote(t.Context(), &service.PromoteRequest{Selector: me, Promotion: service.Promotion{Kind: "preference", Text: "Call me Ishmael in letters."}}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
	m.Talk(t, graphiti.Who{User: servicetest.Owner, Session: "a", Application: "codex"}, "Forget that you should call me Ishmael in letters.")
	rules := func() string {
		var list []string
		for _, f := range run(t, m, service.Search, service.SearchRequest{Selector: me, Query: "Ishmael", SearchFilter: service.SearchFilter{Kind: "rule"}, Limit: 9}).Facts {
			list = append(list, f.State+": "+f.Text)
		}
		return strings.Join(list, "\n")
	}
	if got, want := rules(), "waiting: Forget that you should call me Ishmael in letters\nvalid: Call me Ishmael in letters."; got != want {
		t.Errorf("while it waits, got:\n%s\nwant:\n%s", got, want)
	}
	p := run(t, m, service.Pending, service.PendingRequest{Selector: me})
	if len(p.Lines) != 1 || len(p.Lines[0].Ends) != 1 || p.Lines[0].Ends[0] != "Call me Ishmael in letters." {
		t.Fatalf("got %+v, want one line that ends the promoted text", p.Lines)
	}
	run(t, m, service.Settle, service.SettleRequest{Selector: me, Accept: []string{p.Lines[0].ID}})
	if got, want := rules(), "ended: Call me Ishmael in letters."; got != want {
		t.Errorf("after it was accepted, got:\n%s\nwant:\n%s", got, want)
	}
}

// TestSearch_OldFacts checks that a search for facts finds a statement older than 1,400 others, and
// counts only matches.
func TestSearch_OldFacts(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	lines := []service.Line{{Scope: "user", Role: "user", Content: "The heron is grey.", Timestamp: "2026-01-01T00:00:00Z"}}
	for i := range 1400 {
		lines = append(lines, service.Line{Scope: "user", Role: "user", Content: fmt.Sprintf("The lighthouse has lamp %d.", i), Timestamp: "2026-02-01T00:00:00Z"})
	}
	run(t, m, service.Import, service.ImportRequest{Lines: lines})
	for name, in := range map[string]service.SearchRequest{
		"a word":     {Query: "heron", SearchFilter: service.SearchFilter{Kind: "fact"}},
		"a time":     {SearchFilter: service.SearchFilter{Kind: "fact", Until: "2026-01-02"}},
		"all words":  {Query: "grey heron", SearchFilter: service.SearchFilter{Kind: "fact", Newest: true}},
		"its state":  {Query: "heron", SearchFilter: service.SearchFilter{Kind: "fact", State: "valid"}},
		"as message": {Query: "heron", SearchFilter: service.SearchFilter{Kind: "message", Newest: true}},
	} {
		in.Selector, in.Limit = service.Selector{User: servicetest.Owner}, 10
		got := run(t, m, service.Search, in)
		if got.All != 1 || got.AtMost || len(got.Facts) != 1 || got.Facts[0].Text != "The heron is grey." {
			t.Errorf("%s: got %d results, more: %v, %+v", name, got.All, got.AtMost, got.Facts)
		}
	}
}

// TestSearch_Limit checks that the results of a short list are the first ones of a long list, of all
// projects, and that the short list counts the others.
func TestSearch_Limit(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	for i := range 240 {
		l := service.Line{Role: "user", Scope: "workspace", Content: fmt.Sprintf("The heron number %d sleeps here.", i), Timestamp: time.Date(2026, 1, 1, i*7919%240, 0, 0, 0, time.UTC).Format(time.RFC3339)}
		if i%9 == 0 {
			l.Content = fmt.Sprintf("Does the heron number %d sleep in a boathouse?", i)
		}
		in := service.ImportRequest{Selector: service.Selector{Workspace: fmt.Sprintf("p%d", min(i%5, 2))}, Lines: []service.Line{l}}
		must(t, helptest.ErrorOf(m.Memory.Import(t.Context(), &in)))
	}
	m.Settle(t)
	for name, f := range map[string]service.SearchFilter{"best": {Kind: "message"}, "newest": {Kind: "message", Newest: true}} {
		find := func(limit int) service.Searched {
			return run(t, m, service.Search, service.SearchRequest{Query: "heron boathouse", SearchFilter: f, Limit: limit})
		}
		long := find(1000)
		for _, limit := range []int{1, 10, 50} {
			short := find(limit)
			for i := range short.Facts {
				if short.Facts[i].ID != long.Facts[i].ID {
					t.Errorf("%s: result %d of %d is %q, want %q", name, i, limit, short.Facts[i].Text, long.Facts[i].Text)
				}
			}
			if n := min(limit, len(long.Facts)); len(short.Facts) != n || short.All < long.All {
				t.Errorf("%s: %d results of %d, want %d of at least %d", name, len(short.Facts), short.All, n, long.All)
			}
		}
	}
}

// neverFinds is a search that ends with its context.
type neverFinds struct{}

func (neverFinds) Search(ctx context.Context, _ []string, _ string, _ int) ([]graphiti.Fact, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestSearch_ByWords checks that a search without the search by meaning, which was not ready, says so.
func TestSearch_ByWords(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s", "", "The heron sleeps in the boathouse.")
	find := func() service.Searched {
		return run(t, m, service.Search, service.SearchRequest{Query: "heron", SearchFilter: service.SearchFilter{Everything: true}, Limit: 50})
	}
	if got := find(); got.ByWords || len(got.Facts) != 1 {
		t.Errorf("%d results, by words only: %v; want one by words and by meaning", len(got.Facts), got.ByWords)
	}
	m.Backend.Searcher = neverFinds{}
	if got := find(); !got.ByWords || len(got.Facts) != 1 {
		t.Errorf("%d results, by words only: %v; want one, and that it says so", len(got.Facts), got.ByWords)
	}
}
