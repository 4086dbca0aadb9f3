package embedded

import (
	stdcmp "cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// openDistilled opens a store that queues messages for a model.
func openDistilled(t *testing.T) *Store {
	t.Helper()
	e := openEmbedded(t)
	e.Distil(func() {})
	return e
}

// say stores one turn with the current time.
func say(t *testing.T, e *Store, group, turn, user, assistant string) {
	t.Helper()
	message := func(role graphiti.RoleType, text string) graphiti.Row {
		return graphiti.Row{Name: graphiti.EpisodeName(turn, role), Role: role, Text: text, Said: time.Now(), Source: `{"session":"` + turn + `"}`}
	}
	must(t, e.Write(context.Background(), group, []graphiti.Row{message(graphiti.RoleUser, user), message(graphiti.RoleAssistant, assistant)}))
}

// nextBatch returns the batch that is due.
func nextBatch(t *testing.T, e *Store) *graphiti.Batch {
	t.Helper()
	b, _, err := e.Undistilled(context.Background(), 0, 1)
	must(t, err)
	if b == nil {
		t.Fatal("no batch is due, want one")
	}
	return b
}

// distil stores facts for the batch that is due. Facts without sources are from its first
// message.
func distil(t *testing.T, e *Store, facts ...graphiti.Distilled) int {
	t.Helper()
	b := nextBatch(t, e)
	for i := range facts {
		f := &facts[i]
		f.Name, f.Role, f.Since = stdcmp.Or(f.Name, "fact "+f.Text), graphiti.RoleUser, b.Messages[0].Said
		if f.Sources == nil {
			f.Sources = []string{b.Messages[0].Name}
		}
	}
	n, err := e.KeepFacts(context.Background(), b, facts)
	must(t, err)
	return n
}

func factsOf(t *testing.T, e *Store, group string) (all []graphiti.Distilled) {
	t.Helper()
	err := e.Distilled(context.Background(), group, func(d *graphiti.Distilled) error { all = append(all, *d); return nil })
	must(t, err)
	return all
}

func TestFacts_AreFoundByTextAndKeysInPlaceOfTheirMessages(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "the deploy key lives in kv/ci-runner", "Noted.")
	if got := search(t, e, "g", "where is the deploy key?"); len(got) != 1 || !strings.HasPrefix(got[0], "user, "+time.Now().Format(time.DateOnly)+": the deploy key") {
		t.Fatalf("before distilling: got %q, want the message", got)
	}
	distil(t, e, graphiti.Distilled{Text: "The deploy key is in kv/ci-runner", Keys: []string{"credential", "ssh secret", "Zugang"}})
	want := []string{"The deploy key is in kv/ci-runner"}
	for _, reopened := range []bool{false, true} {
		if reopened {
			e.index.Deleted("g")
		}
		for _, q := range []string{"where is the deploy key?", "which ssh secret do we use?", "Wo ist der Zugang?"} {
			if diff := cmp.Diff(want, search(t, e, "g", q)); diff != "" {
				t.Errorf("search %q, index built again %v (-want +got):\n%s", q, reopened, diff)
			}
		}
	}
	if b, next, err := e.Undistilled(context.Background(), 0, 1); b != nil || !next.IsZero() || err != nil {
		t.Errorf("after distilling: got batch %v at %v, %v; want none", b, next, err)
	}
}

// TestFacts_AndTheirExactMessage checks that a question with the words of a message finds
// the message in addition to its fact, and that a question with other words finds the fact
// alone.
func TestFacts_AndTheirExactMessage(t *testing.T) {
	e := openDistilled(t)
	for i, text := range []string{"lamps in hall seven flicker whenever the organ plays", "the kettle is blue", "our bus leaves at noon"} {
		say(t, e, "g", string(rune('1'+i)), text, "Noted.")
	}
	distil(t, e, graphiti.Distilled{Text: "The light of the hall is unsteady during music", Keys: []string{"lamps"}})
	exact := func(query string) bool {
		return slices.ContainsFunc(search(t, e, "g", query), func(f string) bool { return strings.HasSuffix(f, "whenever the organ plays") })
	}
	if !exact("lamps flicker whenever organ plays?") {
		t.Error("a question with the message's words does not find it, want it beside its fact")
	}
	if exact("what is wrong with the lamps?") {
		t.Error("a question with other words finds the message, want its fact alone")
	}
}

// TestFacts_ThatRequestsNeed checks that a request in the first person finds a fact about
// the person's identity by one of its keys, and that any request finds a command, also
// after a rebuild of the index.
func TestFacts_ThatRequestsNeed(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "Ada Brandt here, and my heart pills are pink", "Hello Ada.")
	distil(t, e,
		graphiti.Distilled{Text: "The user is Ada Brandt", Kind: "identity", About: "the user", Keys: []string{"my name", "author"}},
		graphiti.Distilled{Text: "The pills are pink", Kind: "other", About: "the user", Keys: []string{"medicine", "tablet"}},
		graphiti.Distilled{Text: "The checks run by make vet", Kind: "command", Keys: []string{"linter"}})
	for _, reopened := range []bool{false, true} {
		if reopened {
			e.index.Deleted("g")
		}
		for _, tc := range []struct {
			query  string
			strong bool
			ofUser bool
		}{
			{"Put my name into the licence file.", true, true},
			{"Put the name into the licence file.", false, true},
			{"Put my tablet into the licence file.", false, false},
			{"Put the linter into the licence file.", true, false},
		} {
			facts, err := e.Search(context.Background(), []string{"g"}, tc.query, 5)
			if err != nil || len(facts) == 0 {
				t.Fatalf("search %q = %v, %v; want a fact", tc.query, facts, err)
			}
			if f := facts[0]; f.Strength >= 0.18 != tc.strong || f.OfUser != tc.ofUser {
				t.Errorf("search %q, index built again %v: got %q, strength %.2f, for all projects %v; want at least 0.18 %v, for all projects %v",
					tc.query, reopened, f.Text, f.Strength, f.OfUser, tc.strong, tc.ofUser)
			}
		}
	}
}

func TestFacts_ReplacedOnesGiveWay(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "we use mysql 8", "ok")
	distil(t, e, graphiti.Distilled{Text: "The database is MySQL 8", Keys: []string{"storage"}})
	old := factsOf(t, e, "g")[0].Name
	say(t, e, "g", "2", "that is postgres 16 from now on", "ok")
	distil(t, e, graphiti.Distilled{Text: "Postgres 16 is in use", Replaces: []string{old}})
	for _, q := range []string{"which storage do we have?", "which database?", "do we use mysql?"} {
		if got := search(t, e, "g", q); !slices.Equal(got, []string{"Postgres 16 is in use"}) {
			t.Errorf("search %q = %q, want the newer fact alone", q, got)
		}
	}
	facts, err := e.Search(context.Background(), []string{"g"}, "which database was it in March?", 5)
	must(t, err)
	past := slices.IndexFunc(facts, func(f graphiti.Fact) bool { return f.Text == "The database is MySQL 8" })
	if past < 0 || !facts[past].Past || facts[past].InvalidAt.IsZero() {
		t.Errorf("question about the past: got %+v, want the older fact with its end", facts)
	}
}

func TestFacts_OfAnotherPersonAreNotEnded(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "we use mysql 8", "ok")
	distil(t, e, graphiti.Distilled{Text: "The database is MySQL 8"})
	err := e.db.Write(context.Background(), func(tx *database.Tx) error {
		_, err := tx.Exec("UPDATE facts SET owner = 'user:other'")
		return err
	})
	must(t, err)
	say(t, e, "g", "2", "we use postgres", "ok")
	distil(t, e, graphiti.Distilled{Text: "The database is Postgres", Replaces: []string{factsOf(t, e, "g")[0].Name}})
	if all := factsOf(t, e, "g"); len(all) != 2 || all[0].EndedBy != "" {
		t.Errorf("got %+v, want both facts valid", all)
	}
}

func TestFacts_AreForgottenWithAnyOfTheirMessages(t *testing.T) {
	e := openDistilled(t)
	for i, text := range []string{"we use mysql", "we use postgres", "we use sqlite"} {
		turn := string(rune('1' + i))
		say(t, e, "g", turn, text, "Sure, "+text+".")
		b := nextBatch(t, e)
		f := graphiti.Distilled{Text: "Database: " + text, Sources: []string{b.Messages[0].Name, b.Messages[1].Name}}
		if all := factsOf(t, e, "g"); i > 0 {
			f.Replaces = []string{all[i-1].Name}
		}
		distil(t, e, f)
	}
	forget := func(turn string, role graphiti.RoleType) {
		t.Helper()
		must(t, helptest.ErrorOf(e.ForgetEpisodes(context.Background(), "g", func(r *graphiti.Row) bool { return r.Name == graphiti.EpisodeName(turn, role) })))
	}
	ends := func() (all []string) {
		for _, f := range factsOf(t, e, "g") {
			all = append(all, f.Text+" > "+strings.TrimPrefix(f.EndedBy, "fact "))
		}
		return all
	}
	forget("2", graphiti.RoleUser)
	if diff := cmp.Diff([]string{"Database: we use mysql > Database: we use sqlite", "Database: we use sqlite > "}, ends()); diff != "" {
		t.Errorf("without the second (-want +got):\n%s", diff)
	}
	forget("3", graphiti.RoleAssistant)
	if diff := cmp.Diff([]string{"Database: we use mysql > "}, ends()); diff != "" {
		t.Errorf("without the third (-want +got):\n%s", diff)
	}
	if got := search(t, e, "g", "which database?"); !slices.Equal(got, []string{"Database: we use mysql"}) {
		t.Errorf("got %q, want the fact that holds again", got)
	}
	if got := search(t, e, "g", "since when sqlite?"); len(got) != 1 || !strings.HasSuffix(got[0], "we use sqlite") {
		t.Errorf("got %q, want the message that is left", got)
	}
	must(t, e.Forget(context.Background(), "g"))
	if all := factsOf(t, e, "g"); len(all) > 0 {
		t.Errorf("after the group was forgotten: got %+v, want no facts", all)
	}
}

// TestEndDistilled checks that the model does not see facts of ended messages, and that
// such facts can be stored again.
func TestEndDistilled(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "the kettle is blue", "ok")
	fact := graphiti.Distilled{Text: "The kettle is blue", Keys: []string{"boiler"}}
	distil(t, e, fact)
	end := func(turn string, at time.Time) {
		t.Helper()
		must(t, e.EndDistilled(context.Background(), "g", []string{graphiti.EpisodeName(turn, graphiti.RoleUser)}, at))
	}
	found := func() bool { return len(search(t, e, "g", "which boiler?")) == 1 }
	end("1", time.Now())
	if found() {
		t.Error("a search finds an ended fact")
	}
	end("1", time.Time{})
	if !found() {
		t.Error("a search does not find a fact that is valid again")
	}
	end("1", time.Now())
	say(t, e, "g", "2", "the kettle is blue", "ok")
	if b := nextBatch(t, e); len(b.Known) > 0 {
		t.Errorf("known to the model: %+v, want no ended fact", b.Known)
	}
	if n := distil(t, e, graphiti.Distilled{Name: "again", Text: fact.Text, Keys: fact.Keys}); n != 1 || !found() {
		t.Errorf("stored %d facts, found %v; want the fact again", n, found())
	}
	say(t, e, "g", "3", "the lamp is red", "ok")
	end("3", time.Now())
	if b := nextBatch(t, e); len(b.Messages) != 1 || b.Messages[0].Text != "ok" {
		t.Errorf("messages for the model: %+v, want no ended one", b.Messages)
	}
}

func TestFacts_OneIsForgotten(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "we use mysql 8", "ok")
	distil(t, e, graphiti.Distilled{Text: "The database is MySQL 8", Keys: []string{"storage"}})
	old := factsOf(t, e, "g")[0].Name
	say(t, e, "g", "2", "that is postgres 16 from now on", "ok")
	distil(t, e, graphiti.Distilled{Text: "The database is Postgres 16", Keys: []string{"storage"}, Replaces: []string{old}})
	newer := factsOf(t, e, "g")[1].Name
	must(t, helptest.ErrorOf(e.ForgetEpisodes(context.Background(), "g", func(r *graphiti.Row) bool { return r.Name == newer })))
	if got := factsOf(t, e, "g"); len(got) != 1 || got[0].Name != old || !got[0].Until.IsZero() {
		t.Errorf("facts: got %+v, want the older one, valid again", got)
	}
	if got := search(t, e, "g", "is postgres 16 in use?"); len(got) != 1 || !strings.Contains(got[0], "that is postgres 16 from now on") {
		t.Errorf("search = %q, want the message of the forgotten fact", got)
	}
}

func TestKeepFacts_AfterAForget(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "secret cat", "yes")
	b := nextBatch(t, e)
	must(t, helptest.ErrorOf(e.ForgetEpisodes(context.Background(), "g", func(r *graphiti.Row) bool { return r.Name == b.Messages[0].Name })))
	n, err := e.KeepFacts(context.Background(), b, []graphiti.Distilled{{Name: "f", Text: "There is a cat", Role: graphiti.RoleUser, Sources: []string{b.Messages[1].Name}}})
	if all := factsOf(t, e, "g"); n != 0 || err != nil || len(all) != 0 {
		t.Errorf("KeepFacts = %d, %v with %v; want no fact: a message of the batch was forgotten", n, err, all)
	}
}

func TestKeepFacts_Twice(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "we use mysql", "ok")
	b := nextBatch(t, e)
	facts := []graphiti.Distilled{{Name: "f", Text: "MySQL", Role: graphiti.RoleUser, Sources: []string{b.Messages[0].Name}}}
	for i := range 2 {
		n, err := e.KeepFacts(context.Background(), b, facts)
		if want := 1 - i; n != want || err != nil {
			t.Errorf("call %d: got %d, %v; want %d", i, n, err, want)
		}
	}
}

func TestKeepFacts_OnlyInGroupsThatHaveAllItsMessages(t *testing.T) {
	e, ctx := openDistilled(t), context.Background()
	say(t, e, "project", "1", "I am Ana; the host is h1", "ok")
	b := nextBatch(t, e)
	message := func(name string) graphiti.Row {
		return graphiti.Row{Name: name, Role: graphiti.RoleUser, Text: "I am Ana", Said: time.Now(), Source: `{"session":"1"}`}
	}
	must(t, e.Write(ctx, "mine", []graphiti.Row{message(b.Messages[0].Name)}))
	distil(t, e, graphiti.Distilled{Text: "The person is Ana"}, graphiti.Distilled{Text: "The host is h1", Sources: []string{b.Messages[0].Name, b.Messages[1].Name}})
	if got := len(factsOf(t, e, "project")); got != 2 {
		t.Errorf("got %d facts in the project, want 2", got)
	}
	if all := factsOf(t, e, "mine"); len(all) != 1 || all[0].Text != "The person is Ana" {
		t.Errorf("got %+v in the person's group, want the fact from the message that it has", all)
	}
}

func TestUndistilled_WaitsUntilQuietOrGrown(t *testing.T) {
	e, ctx := openDistilled(t), context.Background()
	say(t, e, "g", "1", "hello there", "hi")
	before := time.Now()
	b, next, err := e.Undistilled(ctx, time.Hour, 4000)
	if b != nil || err != nil || next.Sub(before) < 59*time.Minute || next.Sub(before) > 61*time.Minute {
		t.Errorf("quiet: got %v at %v, %v; want none for an hour", b, next, err)
	}
	if b, _, err := e.Undistilled(ctx, time.Hour, 10); b == nil || len(b.Messages) != 2 || err != nil {
		t.Errorf("grown: got %v, %v; want both messages", b, err)
	}
	b = nextBatch(t, e)
	for range maxTries {
		must(t, e.Postpone(ctx, b, time.Now().Add(time.Hour), true))
		if b, _, err := e.Undistilled(ctx, 0, 1); b != nil || err != nil {
			t.Errorf("postponed: got %v, %v; want none", b, err)
		}
	}
	if b, next, err := e.Undistilled(ctx, 0, 1); b != nil || !next.IsZero() || err != nil {
		t.Errorf("given up: got %v at %v, %v; want none at any time", b, next, err)
	}
}

// TestPostpone checks that only calls of the model count as attempts.
func TestPostpone(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "the kettle is blue", "ok")
	for _, failed := range []bool{false, true} {
		for range maxTries {
			must(t, e.Postpone(context.Background(), nextBatch(t, e), time.Now(), failed))
		}
		if b, _, err := e.Undistilled(context.Background(), 0, 1); (b == nil) != failed || err != nil {
			t.Errorf("after %d attempts that failed (%v): got batch %+v, %v; want one unless they failed", maxTries, failed, b, err)
		}
	}
}

func TestUndistilled_LeavesOldMessagesOut(t *testing.T) {
	e := openDistilled(t)
	tell(t, e, "g", "1", "an import of March", "ok")
	if b, next, err := e.Undistilled(context.Background(), 0, 1); b != nil || !next.IsZero() || err != nil {
		t.Errorf("got batch %v at %v, %v; want none", b, next, err)
	}
}

func TestUndistilled_KnowsTheFactsAboutIt(t *testing.T) {
	e := openDistilled(t)
	say(t, e, "g", "1", "many things", "ok")
	facts := []graphiti.Distilled{{Text: "The harbour pulls from port 6190"}}
	for i := range 60 {
		facts = append(facts, graphiti.Distilled{Text: "Thing number " + strings.Repeat("x", i+1)})
	}
	distil(t, e, facts...)
	say(t, e, "g", "2", "the harbour uses another port, 6191", "ok")
	b := nextBatch(t, e)
	if len(b.Known) == 0 || len(b.Known) > maxKnown || b.Known[0].Text != "The harbour pulls from port 6190" {
		t.Errorf("got %d known facts, the first %+v; want at most %d, the one about the port first", len(b.Known), b.Known[:min(1, len(b.Known))], maxKnown)
	}
}

func TestRestoreDistilled(t *testing.T) {
	from, to := openDistilled(t), openEmbedded(t)
	for i, text := range []string{"we use mysql", "postgres now"} {
		say(t, from, "g", string(rune('1'+i)), text, "ok")
		say(t, to, "g", string(rune('1'+i)), text, "ok")
		f := graphiti.Distilled{Text: "Database: " + text, Keys: []string{"storage"}}
		if i > 0 {
			f.Replaces = []string{factsOf(t, from, "g")[0].Name}
		}
		distil(t, from, f)
	}
	all := factsOf(t, from, "g")
	for _, want := range []int{2, 0} {
		if n, err := to.RestoreDistilled(context.Background(), "g", slices.Clone(all)); n != want || err != nil {
			t.Errorf("RestoreDistilled = %d, %v; want %d", n, err, want)
		}
	}
	restored := factsOf(t, to, "g")
	for i := range restored {
		restored[i].Owner = all[i].Owner
	}
	if diff := cmp.Diff(all, restored); diff != "" {
		t.Errorf("restored facts (-want +got):\n%s", diff)
	}
	if got := search(t, to, "g", "which storage?"); !slices.Equal(got, []string{"Database: postgres now"}) {
		t.Errorf("got %q, want the valid fact", got)
	}
}
