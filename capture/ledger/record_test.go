package ledger

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// open opens a ledger in a new file.
func open(t *testing.T) *Ledger {
	t.Helper()
	s, err := openAny(t)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// An event changes the state of a turn in a ledger.
type event func(t *testing.T, s *Ledger)

// told returns an event that adds a turn, and checks the number of groups that accept it.
func told(answer string, taken int, as func(*Turn)) event {
	return func(t *testing.T, s *Ledger) {
		t.Helper()
		tn := turn("1", "g")
		tn.Assistant, tn.Generation = answer, newest(t, s)
		as(&tn)
		all, err := s.Add(context.Background(), []Turn{tn}, time.Now())
		if err != nil || len(all[0].Groups) != taken {
			t.Fatalf("%q: taken in by %v, %v; want %d", answer, all, err, taken)
		}
	}
}

func live(answer string, taken int) event { return told(answer, taken, func(*Turn) {}) }
func loop(answer string, taken int) event {
	return told(answer, taken, func(tn *Turn) { tn.Open = true })
}

func history(answer string, taken int) event {
	return told(answer, taken, func(tn *Turn) { tn.Backfill = true })
}

// message is a message of the person in a history without an answer.
func message(taken int) event {
	return told("", taken, func(tn *Turn) { tn.Backfill, tn.Open = true, true })
}

func text(taken int) event {
	return told("", taken, func(tn *Turn) { tn.Standalone = true })
}

func interrupted(answer string) event {
	return func(t *testing.T, s *Ledger) {
		t.Helper()
		tn := turn("1", "g")
		tn.Assistant = answer
		must(t, s.CutOff(context.Background(), &tn, time.Now()))
	}
}

func deliver(t *testing.T, s *Ledger) {
	t.Helper()
	entries, err := s.Next(context.Background(), "g", 10)
	must(t, err)
	for i := range entries {
		if ok, err := s.MarkSent(&entries[i]); err != nil || !ok {
			t.Fatal(ok, err)
		}
		must(t, s.MarkDelivered(&entries[i], true))
	}
}

func die(t *testing.T, s *Ledger) {
	t.Helper()
	entries, err := s.Next(context.Background(), "g", 1)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v, want no error, 1 of them", entries, err)
	}
	must(t, s.MarkDead(&entries[0], "no"))
}

func drop(t *testing.T, s *Ledger) {
	t.Helper()
	if n, err := s.Drop(nil); err != nil || n != 1 {
		t.Fatalf("got %v, %v, want no error, 1", n, err)
	}
}

func retry(t *testing.T, s *Ledger) {
	t.Helper()
	if n, err := s.Retry(nil); err != nil || n != 1 {
		t.Fatalf("got %v, %v, want no error, 1", n, err)
	}
}

func forget(t *testing.T, s *Ledger) {
	t.Helper()
	must(t, s.Forget(Part{Group: "g"}, newest(t, s)+1))
}

// newest returns the current generation.
func newest(t *testing.T, s *Ledger) int64 {
	t.Helper()
	n, err := s.Raise(nil)
	must(t, err)
	return n
}

// TestStates checks the state table of the package comment.
func TestStates(t *testing.T) {
	for name, tc := range map[string]struct {
		events []event
		want   []string // queued answers at the end
	}{
		"an answer once":                  {[]event{live("a", 1), live("a", 0), live("b", 0), history("a", 0)}, []string{"a"}},
		"a history once":                  {[]event{history("a", 1), history("a", 0), live("a", 0)}, []string{"a"}},
		"delivered":                       {[]event{live("a", 1), deliver, live("a", 0), history("a", 0)}, nil},
		"dead, and retried":               {[]event{live("a", 1), die, live("a", 0), retry, live("a", 0)}, []string{"a"}},
		"dropped":                         {[]event{live("a", 1), die, drop, live("a", 0), history("a", 0)}, nil},
		"interrupted":                     {[]event{interrupted("ha"), history("ha", 0), history("half", 0)}, nil},
		"interrupted and given again":     {[]event{interrupted("ha"), live("half", 1), history("half", 0)}, []string{"half"}},
		"a loop and its end":              {[]event{loop("a", 1), live("ab", 1), history("ab", 0)}, []string{"a", "ab"}},
		"a loop and its end, delivered":   {[]event{loop("a", 1), deliver, live("ab", 1), live("ab", 0)}, []string{"ab"}},
		"a loop and its end, dropped":     {[]event{loop("a", 1), die, drop, live("ab", 1)}, []string{"ab"}},
		"a loop that ends as it was":      {[]event{loop("a", 1), live("a", 0)}, []string{"a"}},
		"a loop, and no answer":           {[]event{loop("a", 1), live("", 0)}, []string{"a"}},
		"a loop whose end is in history":  {[]event{loop("a", 1), deliver, history("ab", 1), history("ab", 0)}, []string{"ab"}},
		"a loop that goes on twice":       {[]event{loop("a", 1), loop("ab", 1), live("abc", 1)}, []string{"a", "ab", "abc"}},
		"a loop, then interrupted":        {[]event{loop("a", 1), interrupted("ab"), history("ab", 0), live("abc", 1)}, []string{"a", "abc"}},
		"interrupted, then a loop":        {[]event{interrupted("ab"), loop("a", 1), history("ab", 0), live("abc", 1)}, []string{"a", "abc"}},
		"a message and its answer":        {[]event{message(1), message(0), live("a", 1), message(0)}, []string{"a", ""}},
		"a message whose answer is known": {[]event{live("a", 1), message(0)}, []string{"a"}},
		"interrupted, then a message":     {[]event{interrupted(""), message(1), message(0), history("ab", 0), live("abc", 1)}, []string{"abc", ""}},
		"forgotten while it waits":        {[]event{live("a", 1), forget, live("a", 0), history("a", 0)}, nil},
		"forgotten when delivered":        {[]event{live("a", 1), deliver, forget, live("a", 0), history("a", 0)}, nil},
		"a text told again":               {[]event{text(1), text(0), deliver, text(0), forget, text(1)}, []string{""}},
		"interrupted before the forget":   {[]event{interrupted("ha"), forget, history("ha", 0), live("half", 1)}, []string{"half"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for _, e := range tc.events {
				e(t, s)
			}
			withdrawn, err := s.Withdrawn(context.Background(), "")
			if err == nil {
				err = s.Settle(withdrawn)
			}
			must(t, err)
			entries, err := s.Next(context.Background(), "g", 10)
			must(t, err)
			var got []string
			for _, e := range entries {
				got = append(got, s.memory.(*shelf).text(e.Turn))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q wait, want %q", got, tc.want)
			}
		})
	}
}

// TestSameWords checks that a history does not add the words of another turn under a new
// ID, even if that turn was delivered, interrupted or forgotten, and that a live answer
// does.
func TestSameWords(t *testing.T) {
	for name, first := range map[string]event{
		"pending": live("a", 1), "interrupted": interrupted("a"), "delivered": func(t *testing.T, s *Ledger) { live("a", 1)(t, s); deliver(t, s) },
		"forgotten": func(t *testing.T, s *Ledger) { live("a", 1)(t, s); forget(t, s) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			first(t, s)
			other := turn("2", "g")
			other.User, other.Assistant, other.Backfill, other.Generation = "user 1", "a", true, newest(t, s)
			if all, err := s.Add(context.Background(), []Turn{other}, time.Now()); err != nil || len(all[0].Groups) != 0 {
				t.Errorf("taken from a history: %+v %v", all, err)
			}
			other.Backfill = false
			if all, err := s.Add(context.Background(), []Turn{other}, time.Now()); err != nil || len(all[0].Groups) != 1 {
				t.Errorf("not taken: %+v %v", all, err)
			}
		})
	}
}

// TestRaiseForgets checks that a new generation of a scope forgets its older turns: those of a
// group, of a session, or one message.
func TestRaiseForgets(t *testing.T) {
	session := graphiti.SessionScope("session:s", "")
	for name, tc := range map[string]struct {
		scope string
		want  []string // turns that stay
	}{
		"a group":                       {"g", []string{"new"}},
		"a session":                     {session, []string{"other", "new"}},
		"a session of another owner":    {graphiti.SessionScope("session:s", "user:ann"), []string{"old", "other", "new"}},
		"a session of this owner":       {graphiti.SessionScope("session:s", "user:o"), []string{"other", "new"}},
		"another group":                 {"h", []string{"old", "other", "new"}},
		"a message":                     {"message:" + graphiti.MessageID(graphiti.EpisodeName("old", graphiti.RoleUser)) + ":g", []string{"other", "new"}},
		"a message of another group":    {"message:" + graphiti.MessageID(graphiti.EpisodeName("old", graphiti.RoleUser)) + ":h", []string{"old", "other", "new"}},
		"the facts of a group, a scope": {"facts:g", []string{"old", "other", "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := openAny(t)
			must(t, err)
			defer s.Close()
			m := s.memory.(*shelf)
			for i, id := range []string{"old", "other", "new"} {
				tn := turn(id, "g")
				tn.Owner, tn.Session = "user:o", "session:s"
				if id == "other" {
					tn.Session = "session:t"
				}
				if i == 2 {
					tn.Generation = 5
				}
				must(t, helptest.ErrorOf(s.Add(t.Context(), []Turn{tn}, time.Now())))
			}
			for range 2 {
				if newest, err := s.Raise(map[string]int64{tc.scope: 5}); err != nil || newest != 5 {
					t.Fatalf("Raise = %d, %v, want 5", newest, err)
				}
			}
			if diff := cmp.Diff(tc.want, m.turns()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// shelf is a memory of names.
type shelf struct {
	graphiti.Lister
	db   database.DB
	rows []graphiti.Row
}

func (s *shelf) Put(_ *database.Tx, _ string, messages []graphiti.Row) error {
	s.rows = append(s.rows, messages...)
	return nil
}

func (s *shelf) Delete(_ *database.Tx, group string, meant func(*graphiti.Row) bool) (names []string, err error) {
	s.rows = slices.DeleteFunc(s.rows, func(r graphiti.Row) bool {
		if group != "g" || meant != nil && !meant(&r) {
			return false
		}
		names = append(names, r.Name)
		return true
	})
	return names, nil
}

func (s *shelf) DeleteFacts(*database.Tx, string, time.Time) (int, error) { return 0, nil }

func (s *shelf) Extents(context.Context) (map[string]graphiti.Extent, error) { return nil, nil }

func (s *shelf) Lock(*database.Tx, []string) error { return nil }

func (s *shelf) Close() error { return s.db.Close() }

func (s *shelf) turns() (ids []string) {
	for _, r := range s.rows {
		id, _ := graphiti.TurnOf(r.Name)
		ids = append(ids, id)
	}
	return ids
}

// text returns the text of a turn.
func (s *shelf) text(turn string) string {
	for _, r := range s.rows {
		if r.Name == graphiti.EpisodeName(turn, graphiti.RoleUser) {
			return r.Text
		}
	}
	return ""
}

// TestWithdrawn checks that a forget records the part, and the messages that Graphiti may process
// later, but no other waiting copy.
func TestWithdrawn(t *testing.T) {
	for name, part := range map[string]Part{
		"a group": {Group: "g"}, "a session": {Group: "g", Session: "session:s"},
		"a message": {Group: "g", Message: graphiti.MessageID(graphiti.EpisodeName("sent", graphiti.RoleUser))},
	} {
		for when, missed := range map[string]bool{"sent": false, "waits again": true} {
			t.Run(name+", "+when, func(t *testing.T) { withdraw(t, part, missed) })
		}
	}
}

func withdraw(t *testing.T, part Part, missed bool) {
	s := open(t)
	for _, id := range []string{"sent", "listed", "waiting"} {
		tn := turn(id, "g")
		tn.Session = "session:s"
		must(t, helptest.ErrorOf(s.Add(t.Context(), []Turn{tn}, time.Now())))
	}
	list, err := s.Next(t.Context(), "", 2)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for i := range list {
		if ok, err := s.MarkSent(&list[i]); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	must(t, s.MarkDelivered(&list[1], true))
	if missed {
		must(t, s.Requeue(&list[0], ""))
	}
	must(t, s.Forget(part, 2))
	rows, err := s.Withdrawn(t.Context(), "g")
	last := len(rows) - 1
	if err != nil || last < 0 || rows[last].Sent != list[0].Sent || rows[last].Turn+rows[last].Message == "" {
		t.Fatalf("got %+v, %v, want the turn that was sent, at %d", rows, err, list[0].Sent)
	}
	if w := rows[0]; part.Message == "" && (last != 1 || w.Session != graphiti.SessionHash(part.Session) || w.Sent != 0 || w.Turn+w.Message != "") || part.Message != "" && (last != 0 || w.Message != part.Message) {
		t.Errorf("got %+v, want the part", rows)
	}
	if ok, err := s.MarkSent(&list[0]); ok || err != nil {
		t.Errorf("a forgotten turn is sent again: %v, %v", ok, err)
	}
	if n, err := s.Counts(t.Context()); err != nil || n.Withdrawn != len(rows) || part.Message == "" && n.Pending != 0 {
		t.Errorf("got %+v, %v, want %d withdrawn", n, err, len(rows))
	}
	must(t, s.Forget(part, 2))
	if all, err := s.Withdrawn(t.Context(), "g"); err != nil || len(all) != len(rows) {
		t.Errorf("forgotten again: got %+v, %v, want %d rows", all, err, len(rows))
	} else {
		rows = all
	}
	again := turn("again", "g")
	again.Generation = 3
	must(t, helptest.ErrorOf(s.Add(t.Context(), []Turn{again}, time.Now())))
	for _, group := range []string{"", "g"} {
		list, err := s.Next(t.Context(), group, 9)
		if held := part == (Part{Group: "g"}); err != nil || slices.ContainsFunc(list, func(c Copy) bool { return c.Turn == "again" }) == held {
			t.Errorf("got %+v, %v: want a later turn unless Graphiti still has to delete its group", list, err)
		}
	}
	must(t, s.Settle(rows))
	if list, err := s.Next(t.Context(), "", 9); err != nil || !slices.ContainsFunc(list, func(c Copy) bool { return c.Turn == "again" }) {
		t.Errorf("got %+v, %v, want the later turn", list, err)
	}
	if rows, err := s.Withdrawn(t.Context(), ""); err != nil || len(rows) > 0 {
		t.Errorf("got %+v, %v, want none", rows, err)
	}
}

// TestSend checks that turns since a time are queued after all others, without turns that Graphiti
// has or got.
func TestSend(t *testing.T) {
	s, err := openAny(t)
	must(t, err)
	defer s.Close()
	now, copied := time.Now(), s.worth
	add := func(id string, at time.Time, add func(context.Context, []Turn, time.Time) ([]Added, error)) {
		t.Helper()
		must(t, helptest.ErrorOf(add(t.Context(), []Turn{turn(id, "g")}, at)))
	}
	s.worth = nil // before Graphiti
	add("long ago", now.Add(-48*time.Hour), s.Add)
	add("earlier", now.Add(-time.Hour), s.Add)
	s.worth = copied
	add("from Graphiti", now, s.Keep)
	add("sent", now, s.Add)
	list, err := s.Next(t.Context(), "g", 9)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %+v, %v; want one copy", list, err)
	}
	must(t, helptest.ErrorOf(s.MarkSent(&list[0])))
	must(t, s.MarkDelivered(&list[0], true))
	add("later", now, s.Add)
	if n, err := s.Send(now.Add(-24 * time.Hour)); n != 1 || err != nil {
		t.Errorf("sends %d turns, %v; want 1", n, err)
	}
	list, err = s.Next(t.Context(), "g", 9)
	if err != nil || len(list) != 2 || list[0].Turn != "later" || list[1].Turn != "earlier" {
		t.Errorf("got %+v, %v; want later, earlier", list, err)
	}
	if n, err := s.Send(now.Add(-24 * time.Hour)); n != 0 || err != nil {
		t.Errorf("sends %d turns again, %v; want 0", n, err)
	}
}
