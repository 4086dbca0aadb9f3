package embedded

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// naive selects rows by comparing all of them.
func naive(all []graphiti.Row, f graphiti.Filter) (out []graphiti.Row) {
	if f.Last > 0 && !f.Newest {
		return slices.Clone(all[max(0, len(all)-f.Last):])
	}
	for _, r := range all {
		if f.Has(&r) {
			out = append(out, r)
		}
	}
	if !f.Newest {
		return out
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b graphiti.Row) int { return b.Said.Compare(a.Said) })
	n := len(out)
	if f.Last > 0 {
		for n = min(n, f.Last); n > 0 && n < len(out) && out[n].Said.Equal(out[n-1].Said); n++ {
		}
	}
	return out[:n]
}

// TestRows compares random filters with a naive loop.
func TestRows(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a test's
	e := openEmbedded(t)
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	sessions := []string{"s1", "s2", "", `x","n":"s1`}
	var list []graphiti.Row
	for i := range 700 {
		name := graphiti.EpisodeName(fmt.Sprintf("%032x", i/2), roles[i%2])
		if i%11 == 0 {
			name = fmt.Sprintf("another client's %d'\"];--", i)
		}
		list = append(list, graphiti.Row{
			Name: name, Role: roles[random.IntN(len(roles))], Speaker: "jo", Text: fmt.Sprint("text ", i), Said: start.Add(time.Duration(random.IntN(90)) * 500 * time.Millisecond),
			Source: fmt.Sprintf(`{"n":"s2","session":%q,"client":"Client%d"}`, sessions[random.IntN(len(sessions))], random.IntN(maxClients+9)),
		})
	}
	for _, group := range []string{"g", "h"} {
		must(t, e.Write(t.Context(), group, list))
	}
	all := rowsOf(t, e, "g", graphiti.Filter{Text: true})
	other := rowsOf(t, e, "h", graphiti.Filter{Text: true})
	if len(all) != len(list) {
		t.Fatalf("got %d rows, want %d", len(all), len(list))
	}
	for range 1000 {
		f := graphiti.Filter{Text: true}
		some := func() *graphiti.Row { return &all[random.IntN(len(all))] }
		if random.IntN(4) == 0 {
			f.Last = random.IntN(800)
			f.Newest = true
		}
		if f.Last == 0 || f.Newest {
			for range random.IntN(3) {
				f.IDs = append(f.IDs, some().ID)
			}
			for range random.IntN(3) * random.IntN(2) {
				f.Names, f.Keys = append(f.Names, some().Name, "gone"), append(f.Keys, some().Key, other[0].Key, "1 OR 1=1")
			}
			if random.IntN(3) == 0 {
				f.Session = sessions[random.IntN(len(sessions))]
			}
			if random.IntN(3) == 0 {
				f.Roles = []graphiti.RoleType{roles[random.IntN(3)], roles[random.IntN(3)]}
			}
			if random.IntN(4) == 0 {
				f.Client = fmt.Sprint("client", random.IntN(maxClients+9))
			}
			if random.IntN(3) == 0 {
				f.Before = some().Said.Add(time.Duration(random.IntN(3)-1) * time.Microsecond)
			}
			f.Newest = (f.Newest || random.IntN(3) == 0) && len(f.Names) == 0
			if !f.Newest {
				f.Last = 0
			}
		}
		want, got := naive(all, f), rowsOf(t, e, "g", f)
		for i := range got {
			got[i].Rest = 0
		}
		for i := range want {
			want[i].Rest = 0
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v (-want +got):\n%s", f, diff)
		}
		if f.Text = false; f.Last == 0 && len(f.Names) == 0 {
			ids := func(rows []graphiti.Row) (ids []graphiti.ID) {
				for _, r := range rows {
					ids = append(ids, r.ID)
				}
				return ids
			}
			if diff := gocmp.Diff(ids(want), ids(rowsOf(t, e, "g", f))); diff != "" {
				t.Fatalf("headings of %+v (-want +got):\n%s", f, diff)
			}
		}
	}
}

// TestRows_Groups covers a listing of no group.
func TestRows_Groups(t *testing.T) {
	e := openEmbedded(t)
	manyMessages(t, e, "g", 4)
	manyMessages(t, e, "h", 2)
	if rows := rowsOf(t, e, "missing", graphiti.Filter{Names: []string{"x"}}); rows != nil {
		t.Errorf("got %+v of a missing group, want none", rows)
	}
}

// TestRows_Stopped covers a caller that stops, and messages that are deleted meanwhile.
func TestRows_Stopped(t *testing.T) {
	e := openEmbedded(t)
	manyMessages(t, e, "g", 600)
	n := 0
	for range e.Rows(t.Context(), "g", graphiti.Filter{Text: true}) {
		if n++; n == 300 {
			break
		}
	}
	n = 0
	for _, err := range e.Rows(t.Context(), "g", graphiti.Filter{Text: true}) {
		must(t, err)
		if n++; n == 1 {
			must(t, e.Forget(t.Context(), "g"))
		}
	}
	if n != pageRows {
		t.Errorf("got %d rows after a deletion, want the %d that were read", n, pageRows)
	}
}

// TestRows_Words checks that a listing by words has those with most words first, and with Newest
// those with all, and that the other conditions apply too.
func TestRows_Words(t *testing.T) {
	e := openEmbedded(t)
	at := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	var rows []graphiti.Row
	for i, text := range []string{"The nightly job is slow.", "A job is open.", "The nightly train is late.", "The nightly job is fast."} {
		rows = append(rows, graphiti.Row{Name: fmt.Sprintf("m%d", i), Role: graphiti.RoleUser, Text: text, Said: at.Add(time.Duration(i) * time.Hour)})
	}
	must(t, e.Write(t.Context(), "g", rows))
	asked := words.Of("nightly job", 4)
	for want, f := range map[string]graphiti.Filter{
		"m3 m0 m2 m1": {Words: asked},
		"m3 m0":       {Words: asked, Newest: true},
		"m0 m2 m1":    {Words: asked, Before: at.Add(3 * time.Hour)},
		"m2 m1":       {Words: asked, Since: at.Add(time.Hour), Before: at.Add(3 * time.Hour)},
		"":            {Words: []string{"zebra"}},
	} {
		f.Text = true
		var got []string
		for r, err := range e.Rows(t.Context(), "g", f) {
			must(t, err)
			got = append(got, r.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("Rows(%+v) = %q, want %q", f, got, want)
		}
	}
}

// TestRows_WordsDuringABuild checks that words find the same messages before their index is built.
func TestRows_WordsDuringABuild(t *testing.T) {
	e := openEmbedded(t)
	said := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var list []graphiti.Row
	for i, text := range []string{
		"The nightly job runs at 3.", "NIGHTLY JOBS fail.", "Ein Auftrag für die Nacht: Müller.", "get_user_by_id costs 1,250 francs", "getUserById", "夜間ジョブは三時に動く。",
		"The job of the day", "job", "nothing here", "ﬁne ｎｉｇｈｔｌｙ letters", "<graphiti_episode kind=\"decision\">\nscope: user\ncontent:\nThe nightly job is over.\n</graphiti_episode>",
	} {
		list = append(list, graphiti.Row{Name: graphiti.EpisodeName(fmt.Sprintf("%032x", i), roles[0]), Role: roles[0], Text: text, Said: said.Add(time.Duration(i) * time.Second)})
	}
	must(t, e.Write(t.Context(), "g", list))
	for _, query := range []string{"nightly job", "müller", "get_user_by_id", "user", "1250", "1,250 francs", "夜間ジョブ", "episode", "fine nightly", "jobs"} {
		for _, newest := range []bool{false, true} {
			f := graphiti.Filter{Words: words.Of(query, 16), Newest: newest, Text: true}
			e.index.builder <- struct{}{} // no build begins
			e.index.lru.Remove("g")
			before := rowsOf(t, e, "g", f)
			<-e.index.builder
			must(t, helptest.ErrorOf(e.index.Get(t.Context(), "g")))
			after := rowsOf(t, e, "g", f)
			if d := gocmp.Diff(after, before); d != "" || len(after) == 0 && query != "episode" {
				t.Errorf("%s, newest %t: %d messages before the index, %d with it\n%s", query, newest, len(before), len(after), d)
			}
		}
	}
}
