package embedded

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// talk writes messages of one talk: speaker and text by turns.
func talk(t testing.TB, e *Store, session string, at time.Time, lines ...string) {
	t.Helper()
	var m []graphiti.Row
	for i := 0; i < len(lines); i += 2 {
		m = append(m, graphiti.Row{
			Name: session + "." + lines[i+1], Speaker: lines[i], Role: graphiti.RoleUser, Text: lines[i+1],
			Said: at.Add(time.Duration(i) * time.Minute), Source: `{"session":"` + session + `"}`,
		})
	}
	must(t, e.Write(context.Background(), "g", m))
}

// TestRanking: each thing that counts for a message, with its counterexample.
func TestRanking(t *testing.T) {
	day := func(m time.Month, d int) time.Time { return time.Date(2026, m, d, 9, 0, 0, 0, time.UTC) }
	for _, tc := range []struct {
		name  string
		told  func(e *Store)
		query string
		first string
		not   string // is not shown at all
	}{
		{"an answer without the words of its question", func(e *Store) {
			talk(t, e, "a", day(1, 5), "Ann", "Which instrument did you learn as a child?", "Bob", "The oboe, for nine years.")
			talk(t, e, "b", day(1, 6), "Ann", "My child is ill.", "Bob", "Get well soon!")
		}, "What instrument did Bob learn?", "Bob, 2026-01-05: The oboe, for nine years.", ""},
		{"what stands beside it in another talk does not count", func(e *Store) {
			talk(t, e, "a", day(1, 5), "Ann", "We grow tomatoes behind the house.")
			talk(t, e, "b", day(1, 5), "Ann", "The train was late.")
		}, "Where do we grow tomatoes?", "Ann, 2026-01-05: We grow tomatoes behind the house.", "The train was late."},
		{"who is asked about", func(e *Store) {
			talk(t, e, "a", day(1, 5), "Ann", "I adopted a dog, a small one with a white ear.", "Bob", "Congratulations.")
			talk(t, e, "b", day(1, 6), "Bob", "I adopted a dog, an old one from the shelter.", "Ann", "Nice.")
		}, "Which dog did Ann adopt?", "Ann, 2026-01-05: I adopted a dog, a small one with a white ear.", ""},
		{"when it was said", func(e *Store) {
			talk(t, e, "a", day(2, 5), "Ann", "We went to the lake.")
			talk(t, e, "b", day(7, 5), "Ann", "We went to the lake.")
		}, "What did Ann do at the lake in February?", "Ann, 2026-02-05: We went to the lake.", ""},
		{"what has changed since, without a word of the question", func(e *Store) {
			talk(t, e, "a", day(2, 5), "", "The project's codename is Falcon.")
			talk(t, e, "b", day(3, 5), "", "Falcon has been renamed: it is Osprey.")
		}, "What is the codename?", "user, 2026-03-05: Falcon has been renamed: it is Osprey.", ""},
		{"what was said in return to a question", func(e *Store) {
			talk(t, e, "a", day(2, 5), "", "We use MySQL as the database.")
			talk(t, e, "b", day(3, 5), "", "Which database do we use?")
			talk(t, e, "b", day(3, 5), "", "No, we moved to Postgres yesterday.")
		}, "What database are we on?", "user, 2026-03-05: No, we moved to Postgres yesterday.", ""},
		{"may is also a verb", func(e *Store) {
			talk(t, e, "a", day(5, 5), "Ann", "We went to the lake.")
			talk(t, e, "b", day(7, 5), "Ann", "We went to the lake.")
		}, "May I ask when Ann was at the lake?", "Ann, 2026-07-05: We went to the lake.", ""},
		{"the same, asked before, states nothing either", func(e *Store) {
			talk(t, e, "a", day(1, 5), "Ann", "Which port does the staging database use? Look it up. Which port?")
			talk(t, e, "b", day(1, 6), "Ann", "The staging database has port 6543.")
		}, "Which port does the staging database use? Look it up first.", "Ann, 2026-01-06: The staging database has port 6543.", ""},
		{"a question states nothing", func(e *Store) {
			talk(t, e, "a", day(1, 5), "Ann", "Which port does the staging database use?")
			talk(t, e, "b", day(1, 6), "Ann", "The staging database has port 6543.")
		}, "Which port does the staging database use?", "Ann, 2026-01-06: The staging database has port 6543.", "Which port does"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := openEmbedded(t)
			tc.told(e)
			got := search(t, e, "g", tc.query)
			if len(got) == 0 || got[0] != tc.first {
				t.Errorf("found %q, want %q first", got, tc.first)
			}
			for _, g := range got {
				if tc.not != "" && len(g) >= len(tc.not) && cmp.Equal(g[len("Ann, 2026-01-05: "):][:min(len(tc.not), len(g)-len("Ann, 2026-01-05: "))], tc.not) {
					t.Errorf("%q is shown too", g)
				}
			}
		})
	}
}

// TestPreviousQuestion checks that the previous question helps to understand a question, and does
// not outweigh it.
func TestPreviousQuestion(t *testing.T) {
	e := openEmbedded(t)
	day := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	for i, text := range []string{"The staging database listens on port 6543.", "The production database listens on port 7011.", "My passport is in the green folder.", "The passport of the cat is blue."} {
		talk(t, e, string(rune('a'+i)), day.AddDate(0, 0, i), "Ann", text)
	}
	for query, want := range map[string]string{
		"And production?\n\nWhich port does the staging database use?":                   "Ann, 2026-01-06: The production database listens on port 7011.",
		"Where is my green passport?\n\nWhich port does the staging database listen on?": "Ann, 2026-01-07: My passport is in the green folder.",
		"And the green one?\n\nWhich passport do I have?":                                "Ann, 2026-01-07: My passport is in the green folder.",
	} {
		if got := search(t, e, "g", query); len(got) == 0 || got[0] != want {
			t.Errorf("%q found %q, want %q first", query, got, want)
		}
	}
}
