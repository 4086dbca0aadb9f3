package embedded

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestOfSelf checks that a request finds the facts about the person that it needs, newest first, in any
// language, and nothing private.
func TestOfSelf(t *testing.T) {
	e := openEmbedded(t)
	understand(t, e)
	const name, old, home, food = "Hello, my name is Greta Solheim and I live in Bergen.", "I live in Bergen.", "we moved to Aarhus last week", "I'm vegetarian, no fish either"
	for i, text := range []string{
		name, old, "my doctor put me on warfarin", "my sister owes me 800 euros", food, home, "my wife has her operation on Friday", "the trip to Rome costs 300",
		"my name is on the list, says the \"lawyer\"",
	} {
		say(t, e, "g", strconv.Itoa(i), text, "Noted.")
	}
	helptest.Until(t, "vectors", e.Compares)
	for _, tc := range []struct {
		asked string
		want  []string
	}{
		{"put my name into the licence", []string{name}},
		{"mets mon nom dans la licence", []string{name}},
		{"set the time zone of my city", []string{home, old}},
		{"das Wetter soll meinen Wohnort zeigen", []string{home, old}},
		{"suggest a dinner for the team that I can eat too", []string{food}},
		{"rebase my branch onto main", nil},
		{"what is wrong with my code?", nil},
		{"rename the variable to userName", nil},
	} {
		facts, err := e.Search(t.Context(), []string{"g"}, tc.asked, 8)
		must(t, err)
		var got []string
		for _, f := range facts {
			if _, text, _ := strings.Cut(f.Text, ": "); f.OfUser {
				got = append(got, text)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q finds %q, want %q", tc.asked, got, tc.want)
		}
	}
}

// TestOfSelf_Private checks that what a question finds by a word is no line for projects if it is private.
func TestOfSelf_Private(t *testing.T) {
	e := openEmbedded(t)
	understand(t, e)
	for i, text := range []string{"living alone again since the divorce", "doctor gave me sertraline 50", "my boss wants 12 per cent more from me", "my parking space is number 50"} {
		say(t, e, "g", strconv.Itoa(i), text, "Noted.")
	}
	helptest.Until(t, "vectors", e.Compares)
	for asked, want := range map[string][]string{
		"which city do i live in?": nil, "when do i go live again?": nil, "do i need a doctor for 40 users?": nil, "what is the number of my parking space?": {"my parking space is number 50"},
	} {
		facts, err := e.Search(t.Context(), []string{"g"}, asked, 8)
		must(t, err)
		var got []string
		for _, f := range facts {
			if _, text, _ := strings.Cut(f.Text, ": "); !f.Meant && f.Strength >= enough {
				got = append(got, text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q finds %q for a project, want %q", asked, got, want)
		}
	}
}

// TestOfSelf_Distilled checks that a request finds what a person said about themselves after a model has
// read it, whatever the keys of its facts, and not once that is over.
func TestOfSelf_Distilled(t *testing.T) {
	e := openDistilled(t)
	understand(t, e)
	const name, home = "Hello, my name is Greta Solheim.", "I live in Bergen."
	say(t, e, "g", "0", name, "Noted.")
	say(t, e, "g", "1", home, "Noted.")
	distil(t, e,
		graphiti.Distilled{Text: "The user is Greta Solheim", Kind: "identity", About: "the user", Keys: []string{"signature"}, Sources: []string{"graphiti-proxy.turn.0.user"}},
		graphiti.Distilled{Text: "The user's home is Bergen", Kind: "identity", About: "the user", Keys: []string{"address"}, Sources: []string{"graphiti-proxy.turn.1.user"}})
	helptest.Until(t, "vectors", e.Compares)
	of := func(asked string) (got []string) {
		facts, err := e.Search(t.Context(), []string{"g"}, asked, 8)
		must(t, err)
		for _, f := range facts {
			if _, text, _ := strings.Cut(f.Text, ": "); f.OfUser && !f.Meant {
				got = append(got, text)
			}
		}
		return got
	}
	if got := of("put my name into the licence"); !slices.Equal(got, []string{name}) {
		t.Errorf("the name: got %q, want %q", got, name)
	}
	say(t, e, "g", "2", "the moving boxes are all unpacked", "Good.")
	distil(t, e, graphiti.Distilled{Text: "The user's home is Aarhus", Kind: "identity", About: "the user", Keys: []string{"flat"}, Sources: []string{"graphiti-proxy.turn.2.user"}, Replaces: []string{factsOf(t, e, "g")[1].Name}})
	if got := of("set the time zone of my city"); slices.Contains(got, home) {
		t.Errorf("the home: got %q, which is over", got)
	}
}
