package justsaid

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// minute is the time for which a turn is found after it leaves the outbox.
const minute = time.Minute

func say(t *ledger.Turn, _ graphiti.Scope) []graphiti.Row {
	return []graphiti.Row{
		{Name: graphiti.EpisodeName(t.ID, graphiti.RoleUser), Role: graphiti.RoleUser, Text: t.User, Said: t.Said},
		{Name: graphiti.EpisodeName(t.ID, graphiti.RoleAssistant), Role: graphiti.RoleAssistant, Text: t.Assistant, Said: t.Said},
	}
}

func outbox(t *testing.T) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(filepath.Join(t.TempDir(), "spool.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// index returns an index that reads its outbox only when the test calls follow.
func index(t *testing.T, l ledger.Arrivals) *Index {
	t.Helper()
	x, err := Open(Options{Path: filepath.Join(t.TempDir(), "said.db"), Outbox: l, Say: say, For: func() time.Duration { return minute }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func add(t *testing.T, l *ledger.Ledger, group, id, said string) {
	t.Helper()
	turn := ledger.Turn{ID: id, User: said, Assistant: "Noted: " + said, Said: time.Now(), Answered: time.Now(),
		Targets: []graphiti.Target{{Scope: graphiti.ScopeUser, Group: group}}}
	if _, err := l.Add(t.Context(), []ledger.Turn{turn}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// deliver marks all turns of a group in an outbox as delivered.
func deliver(t *testing.T, l *ledger.Ledger, group string) {
	t.Helper()
	list, err := l.Next(t.Context(), group, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.MarkDelivered(list, true, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func follow(t *testing.T, x *Index) {
	t.Helper()
	if err := x.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func sweep(t *testing.T, x *Index, at time.Time) {
	t.Helper()
	if err := x.sweep(t.Context(), at); err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, x *Index, group, query, want string) {
	t.Helper()
	facts, err := x.Search(t.Context(), group, query, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range facts {
		if !f.Weighed || f.Episode == "" {
			t.Errorf("the fact %q has no strength or no episode", f.Text)
		}
		got = append(got, f.Text[strings.Index(f.Text, ": ")+2:])
	}
	if strings.Join(got, "|") != want {
		t.Errorf("asked %q of %s: found %q, want %q", query, group, got, want)
	}
}

func TestWhatWaitsIsFound(t *testing.T) {
	l := outbox(t)
	x := index(t, l)
	add(t, l, "anna", "1", "My canoe is called Wanda.")
	add(t, l, "ben", "2", "My canoe is called Otto.")
	follow(t, x)
	wants(t, x, "anna", "What is my canoe called?", "My canoe is called Wanda.")
	wants(t, x, "ben", "What is my canoe called?", "My canoe is called Otto.")
	wants(t, x, "carl", "What is my canoe called?", "")
}

func TestNothingIsLeftBehind(t *testing.T) {
	l := outbox(t)
	x := index(t, l)
	add(t, l, "anna", "1", "My canoe is called Wanda.")
	follow(t, x)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(x.o.Path))
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v; want no file that a forget would not reach", left, err)
	}
}

func TestARestartReadsWhatWaits(t *testing.T) {
	l := outbox(t)
	add(t, l, "anna", "1", "My canoe is called Wanda.")
	x := index(t, l)
	follow(t, x)
	wants(t, x, "anna", "What is my canoe called?", "My canoe is called Wanda.")
}

func TestWhatWasDeliveredIsFoundForAWhile(t *testing.T) {
	l := outbox(t)
	x := index(t, l)
	add(t, l, "anna", "1", "My canoe is called Wanda.")
	follow(t, x)
	now := time.Now()
	deliver(t, l, "anna")
	sweep(t, x, now)
	wants(t, x, "anna", "What is my canoe called?", "My canoe is called Wanda.")
	sweep(t, x, now.Add(minute-1))
	wants(t, x, "anna", "What is my canoe called?", "My canoe is called Wanda.")
	sweep(t, x, now.Add(minute))
	wants(t, x, "anna", "What is my canoe called?", "")
	if messages := stored(t, x, "anna"); messages != 0 {
		t.Errorf("the scratch file holds %d messages, want none", messages)
	}
}

func TestManyAreDeletedTogether(t *testing.T) {
	l := outbox(t)
	x := index(t, l)
	for i := range purgeFrom {
		add(t, l, "anna", "old"+string(rune('a'+i)), "The old canoe is number "+strings.Repeat("x", i+1))
	}
	follow(t, x)
	deliver(t, l, "anna")
	now := time.Now()
	sweep(t, x, now)
	add(t, l, "anna", "new", "My canoe is called Wanda.")
	follow(t, x)
	sweep(t, x, now.Add(minute))
	wants(t, x, "anna", "What is my canoe called?", "My canoe is called Wanda.")
	if messages := stored(t, x, "anna"); messages != 1 {
		t.Errorf("the scratch file holds %d messages, want 1", messages)
	}
}

func stored(t *testing.T, x *Index, group string) (n int) {
	t.Helper()
	for _, err := range x.store.Rows(t.Context(), group, graphiti.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestAForgottenGroupIsEmpty(t *testing.T) {
	l := outbox(t)
	x := index(t, l)
	add(t, l, "anna", "1", "My canoe is called Wanda.")
	add(t, l, "ben", "2", "My canoe is called Otto.")
	follow(t, x)
	x.Block([]string{"anna"}, false)
	wants(t, x, "anna", "What is my canoe called?", "")
	wants(t, x, "ben", "What is my canoe called?", "My canoe is called Otto.")
	if messages := stored(t, x, "anna"); messages != 0 {
		t.Errorf("the scratch file holds %d messages of a group that is being forgotten, want none", messages)
	}
	add(t, l, "anna", "3", "My kayak is called Hugo.") // during the forget
	follow(t, x)
	wants(t, x, "anna", "What is my kayak called?", "")
	if _, err := l.Forget(ledger.Part{Group: "anna"}, 1, true); err != nil {
		t.Fatal(err)
	}
	add(t, l, "anna", "4", "My raft is called Tilda.")
	x.Block(nil, false)
	follow(t, x)
	wants(t, x, "anna", "What is my canoe called?", "")
	wants(t, x, "ben", "What is my canoe called?", "My canoe is called Otto.")
}

func TestAnotherSessionOfAForgottenGroupIsReadAnew(t *testing.T) {
	l := outbox(t)
	x := index(t, l)
	add(t, l, "anna", "1", "My canoe is called Wanda.")
	follow(t, x)
	x.Block([]string{"anna"}, false) // a forget of one session; the turn is in another
	x.Block(nil, false)
	follow(t, x)
	wants(t, x, "anna", "What is my canoe called?", "My canoe is called Wanda.")
}

// TestAForgetThatWasMissed checks that a forget that ran while this replica had no
// connection still empties the group.
func TestAForgetThatWasMissed(t *testing.T) {
	l := outbox(t)
	x := index(t, l)
	add(t, l, "anna", "1", "My canoe is called Wanda.")
	add(t, l, "ben", "2", "My canoe is called Otto.")
	follow(t, x)
	if _, err := l.Forget(ledger.Part{Group: "anna"}, 1, true); err != nil {
		t.Fatal(err)
	}
	sweep(t, x, time.Now()) // the turn has left the outbox, like a delivered one
	x.Block(nil, true)
	wants(t, x, "anna", "What is my canoe called?", "")
	if messages := stored(t, x, "anna"); messages != 0 {
		t.Errorf("the scratch file holds %d messages of a group that was forgotten, want none", messages)
	}
	follow(t, x)
	wants(t, x, "anna", "What is my canoe called?", "")
	wants(t, x, "ben", "What is my canoe called?", "My canoe is called Otto.")
}

// broken is an outbox that cannot be read.
type broken struct{ ledger.Arrivals }

func (broken) Since(context.Context, int64, int, func(ledger.Entry) error) error {
	return errors.New("the disk is gone")
}

func TestAnOutboxThatFailsIsReadLater(t *testing.T) {
	l := outbox(t)
	x := index(t, broken{l})
	add(t, l, "anna", "1", "My canoe is called Wanda.")
	if err := x.follow(t.Context()); err == nil {
		t.Fatal("following an outbox that cannot be read succeeded")
	}
	wants(t, x, "anna", "What is my canoe called?", "")
	x.writing.Lock()
	x.o.Outbox = l
	x.writing.Unlock()
	follow(t, x)
	wants(t, x, "anna", "What is my canoe called?", "My canoe is called Wanda.")
}

// TestANumberMayBeGivenAgain checks that a turn is found even if it reuses the number of
// the deleted last turn.
func TestANumberMayBeGivenAgain(t *testing.T) {
	l := outbox(t)
	x := index(t, l)
	add(t, l, "anna", "1", "My kayak is called Hugo.")
	add(t, l, "anna", "2", "My raft is called Tilda.")
	follow(t, x)
	for _, boat := range []string{"canoe", "ferry"} {
		list, err := l.Next(t.Context(), "anna", 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.HandedOver([]int64{list[len(list)-1].Seq}); err != nil {
			t.Fatal(err)
		}
		add(t, l, "anna", boat, "My "+boat+" is white.")
		follow(t, x)
		facts, err := x.Search(t.Context(), "anna", "What colour has my "+boat+"?", 1)
		if err != nil || len(facts) == 0 || !strings.Contains(facts[0].Text, boat) {
			t.Errorf("of the %s is found %v, %v", boat, facts, err)
		}
	}
}

// TestWhatTheMemoryHoldsSaysSo checks that a fact carries the ID that Seen recorded for its
// message in its group, even after further reads of the outbox.
func TestWhatTheMemoryHoldsSaysSo(t *testing.T) {
	l := outbox(t)
	x := index(t, l)
	add(t, l, "anna", "1", "My canoe is called Wanda.")
	follow(t, x)
	name := graphiti.EpisodeName("1", graphiti.RoleUser)
	x.Seen("ben", map[string]string{name: "another"})
	has := func(want ...string) {
		t.Helper()
		facts, err := x.Search(t.Context(), "anna", "What is my canoe called?", 1)
		if err != nil || len(facts) != 1 || !slices.Equal(facts[0].Episodes, want) {
			t.Errorf("found %+v, %v; want the ids %q", facts, err, want)
		}
	}
	has()
	x.Seen("anna", map[string]string{name: "here", "something else": "there"})
	has("here")
	add(t, l, "anna", "2", "The wheel encoders come from Baumer.")
	follow(t, x)
	has("here")
}
