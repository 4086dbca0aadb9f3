package embedded

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// TestRelatedWordsCount checks that a search finds a message with a related word after one
// with the word itself, and that a related word alone does not answer the question.
func TestRelatedWordsCount(t *testing.T) {
	e := openEmbedded(t)
	day := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	talk(t, e, "a", day, "Ann", "We brought a tortoise home from the fair.")
	talk(t, e, "b", day.AddDate(0, 0, 1), "Ann", "Pets are not allowed in the old house.")
	talk(t, e, "c", day.AddDate(0, 0, 2), "Ann", "The train was late.")
	got := search(t, e, "g", "Which pets does Ann have?")
	want := []string{"Ann, 2026-01-06: Pets are not allowed in the old house.", "Ann, 2026-01-05: We brought a tortoise home from the fair."}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("found %q, want %q", got, want)
	}
	facts, err := e.Search(t.Context(), []string{"g"}, "Which pet is it?", 5)
	if err != nil || len(facts) != 1 || facts[0].Strength == 0 {
		t.Errorf("%+v, %v, want what has the word, and nothing without it beside that", facts, err)
	}
}

// TestRelatedWordsAreBounded checks that a search for any question reads a limited number
// of messages with related words.
func TestRelatedWordsAreBounded(t *testing.T) {
	e := openEmbedded(t)
	var lines []string
	for i := range 60 {
		lines = append(lines, "Ann", fmt.Sprintf("%d: dog cat puppy fish paris rome gym yoga cake bread piano violin rain snow", i))
	}
	talk(t, e, "a", time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), lines...)
	g, err := e.index.Get(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	asked := words.Of("pets cities sports recipes desserts weather instruments hobbies food travel animals music", maxAsked)
	for most, want := range map[int]int{-5: 0, 0: 0, 1: 1, 100: 100, 10000: mostRelated} {
		read := 0
		for _, a := range relatedTo(g, asked, most) {
			read += len(a)
		}
		if most < mostRelated && read > max(0, most) || read > want || want > 0 && read < want/2 {
			t.Errorf("%d read where %d may be", read, want)
		}
	}
}

// TestTableOfRelatedWords checks that each line of the table can be found, is not empty,
// and has only single words in lower case.
func TestTableOfRelatedWords(t *testing.T) {
	r := related()
	if len(r.lines) < 100 {
		t.Fatalf("%d lines", len(r.lines))
	}
	of := make(map[int]bool)
	for _, lines := range r.of {
		for _, l := range lines {
			of[l] = true
		}
	}
	for i, line := range r.lines {
		if !of[i] || len(line) == 0 {
			t.Errorf("nobody finds %q", line)
		}
		for _, w := range line {
			if words.Term(w) == "" || w != strings.ToLower(w) {
				t.Errorf("%q is not one word that can be found", w)
			}
		}
	}
}
