package embedded

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestPull checks the validity of facts that Graphiti lists with its episodes: a fact ends when
// a later episode ends it, and is valid again when a later episode repeats it. Forgetting a
// message deletes its facts.
func TestPull(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return start.AddDate(0, 0, n) }
	type pull struct {
		text   string
		source string // message, or "" if it only ended the fact
		until  int    // day, or 0
	}
	for _, tc := range []struct {
		name  string
		pulls []pull
		want  map[string]bool // whether a fact is valid, by text
	}{
		{"one", []pull{{"on 1", "m1", 0}}, map[string]bool{"on 1": true}},
		{"ended by a later one", []pull{{"on 1", "m1", 0}, {"on 2", "m2", 0}, {"on 1", "", 2}}, map[string]bool{"on 1": false, "on 2": true}},
		{"ended before it is known", []pull{{"on 1", "", 2}, {"on 1", "m1", 2}}, map[string]bool{"on 1": false}},
		{"back again", []pull{{"on 1", "m1", 0}, {"on 1", "", 2}, {"on 1", "m3", 2}}, map[string]bool{"on 1": true}},
		{"back again, ended again", []pull{{"on 1", "m1", 0}, {"on 1", "m3", 2}, {"on 1", "", 4}}, map[string]bool{"on 1": false}},
		{"back again, not what replaced it", []pull{{"on 1", "m1", 0}, {"on 2", "m2", 0}, {"on 1", "", 2}, {"on 1", "m3", 2}}, map[string]bool{"on 1": true, "on 2": false}},
		{"back again, known at once", []pull{{"on 1", "m1", 0}, {"on 2", "m2", 0}, {"on 1", "m3", 2}, {"on 2", "m2", 0}}, map[string]bool{"on 1": true, "on 2": false}},
		{"of the past from the start", []pull{{"on 1", "m3", 2}}, map[string]bool{"on 1": false}},
		{"from no message that is there", []pull{{"on 1", "m9", 0}}, map[string]bool{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := openEmbedded(t)
			for i, name := range []string{"m1", "m2", "m3"} {
				m := graphiti.Row{Name: name, Role: graphiti.RoleUser, Text: "The database is somewhere.", Said: day(i + 1)}
				must(t, e.Write(t.Context(), "g", []graphiti.Row{m}))
			}
			for _, p := range tc.pulls {
				f := graphiti.Distilled{Name: "graphiti." + p.text, Text: p.text, Role: graphiti.RoleUser, Since: day(1), Made: start}
				if p.text == "on 2" {
					f.Since = day(2)
				}
				if p.source != "" {
					f.Sources = []string{p.source}
				}
				if p.until > 0 {
					f.Until = day(p.until)
				}
				must(t, e.Pull(t.Context(), "g", []graphiti.Distilled{f}))
			}
			valid := func() map[string]bool {
				got := make(map[string]bool)
				if err := e.Distilled(t.Context(), "g", func(d *graphiti.Distilled) error {
					got[d.Text] = d.Until.IsZero()
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				return got
			}
			if diff := cmp.Diff(tc.want, valid()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			must(t, helptest.ErrorOf(e.ForgetEpisodes(t.Context(), "g", func(r *graphiti.Row) bool { return r.Name == "m1" || r.Name == "m3" })))
			if _, there := valid()["on 1"]; there {
				t.Error("a fact of forgotten messages is there")
			}
		})
	}
}

// TestPull_Episode checks that a fact names the episode in Graphiti that it is from, besides its message's client.
func TestPull_Episode(t *testing.T) {
	t.Parallel()
	e := openEmbedded(t)
	said := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	if err := e.Write(t.Context(), "g", []graphiti.Row{{Name: "m", Role: graphiti.RoleUser, Text: "My cat is called Miso.", Said: said, Source: `{"client":"codex"}`}}); err != nil {
		t.Fatal(err)
	}
	f := graphiti.Distilled{Name: "graphiti.1", Text: "The cat is called Miso", Role: graphiti.RoleUser, Since: said, Made: said, Sources: []string{"m"}, Episode: "e1"}
	must(t, e.Pull(t.Context(), "g", []graphiti.Distilled{f}))
	err := e.Distilled(t.Context(), "g", func(d *graphiti.Distilled) error {
		if want := `{"client":"codex","episode":"e1"}`; d.Source != want {
			t.Errorf("source is %s, want %s", d.Source, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPull_Meant checks that a question of the person's with the words of a fact, which has no keys, is
// about the fact, and that a likeness, one word, a request and a question about something else are not.
func TestPull_Meant(t *testing.T) {
	t.Parallel()
	e := openEmbedded(t)
	said := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	facts := []graphiti.Distilled{
		{Name: "graphiti.1", Text: "The user's cat is called Miso and she hates thunder."},
		{Name: "graphiti.2", Text: "Ingrid, the user's sister, lives in Trondheim."},
	}
	for i := range facts {
		f := &facts[i]
		f.Role, f.Since, f.Made, f.Sources = graphiti.RoleUser, said, said, []string{f.Name}
		if err := e.Write(t.Context(), "g", []graphiti.Row{{Name: f.Name, Role: graphiti.RoleUser, Text: f.Text, Said: said}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Pull(t.Context(), "g", facts); err != nil {
		t.Fatal(err)
	}
	for _, rebuilt := range []bool{false, true} {
		if rebuilt {
			e.index.Deleted("g")
		}
		for question, want := range map[string]string{
			"What is my cat called?":                   facts[0].Text,
			"Where does my sister live?":               facts[1].Text,
			"What is the cat command called?":          "",
			"Put the name of my cat into the licence.": "",
			"Where does my server live?":               "",
			"Which pet do I have?":                     "",
		} {
			found, err := e.Search(t.Context(), []string{"g"}, question, 5)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range found {
				if !f.Meant {
					got += f.Text
				}
			}
			if got != want {
				t.Errorf("%q (index built again: %v) is about %q, want %q", question, rebuilt, got, want)
			}
		}
	}
}

// TestPull_EndByPerson checks that Graphiti does not make a fact valid that its person ended.
func TestPull_EndByPerson(t *testing.T) {
	t.Parallel()
	e := openEmbedded(t)
	said := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	if err := e.Write(t.Context(), "g", []graphiti.Row{{Name: "m", Role: graphiti.RoleUser, Text: "My cat is called Miso.", Said: said}}); err != nil {
		t.Fatal(err)
	}
	f := graphiti.Distilled{Name: "graphiti.1", Text: "The cat is called Miso", Role: graphiti.RoleUser, Since: said, Made: said, Sources: []string{"m"}}
	pull := func() {
		t.Helper()
		must(t, e.Pull(t.Context(), "g", []graphiti.Distilled{f}))
	}
	pull()
	must(t, e.EndDistilled(t.Context(), "g", []string{"m"}, said.Add(time.Hour)))
	pull()
	err := e.Distilled(t.Context(), "g", func(d *graphiti.Distilled) error {
		if d.Until.IsZero() {
			t.Error("a fact that its person ended is valid again")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPull_Forgotten checks that Graphiti does not bring back a fact that was forgotten, alone or
// with one of its messages.
func TestPull_Forgotten(t *testing.T) {
	t.Parallel()
	said := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	for _, forgotten := range []string{"graphiti.1", "m1"} {
		t.Run(forgotten, func(t *testing.T) {
			t.Parallel()
			e := openEmbedded(t)
			messages := []graphiti.Row{{Name: "m1", Role: graphiti.RoleUser, Text: "My cat is called Miso.", Said: said}, {Name: "m2", Role: graphiti.RoleUser, Text: "Miso is asleep.", Said: said.Add(time.Hour)}}
			must(t, e.Write(t.Context(), "g", messages))
			count := func() (n int) {
				t.Helper()
				must(t, e.Distilled(t.Context(), "g", func(*graphiti.Distilled) error { n++; return nil }))
				return n
			}
			pull := func(name string) int {
				t.Helper()
				for _, source := range []string{"m1", "m2"} {
					f := graphiti.Distilled{Name: name, Text: "Of the cat: " + name, Role: graphiti.RoleUser, Since: said, Made: said, Sources: []string{source}}
					must(t, e.Pull(t.Context(), "g", []graphiti.Distilled{f}))
				}
				return count()
			}
			if n := pull("graphiti.1"); n != 1 {
				t.Fatalf("got %d facts, want 1", n)
			}
			must(t, helptest.ErrorOf(e.ForgetEpisodes(t.Context(), "g", func(r *graphiti.Row) bool { return r.Name == forgotten })))
			if n := pull("graphiti.1"); n != 0 {
				t.Errorf("got %d facts after a forget, want none", n)
			}
			if n := pull("graphiti.2"); n != 1 {
				t.Errorf("got %d facts, want the other one", n)
			}
		})
	}
}
