package graphiti

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestForgettingEpisodes removes those that are meant, and the facts that were
// first read from them, in every backend; what others said before stays.
func TestForgettingEpisodes(t *testing.T) {
	type backend func(*testing.T) (Memory, func())
	rest := func(o graphititest.Options) backend {
		return func(t *testing.T) (Memory, func()) {
			o.Merge = true
			s, r := standIn(t, o)
			return r, func() { settle(t, s) }
		}
	}
	overMCP := func(age graphititest.Age) backend {
		return func(t *testing.T) (Memory, func()) {
			s, m := mcpStandIn(t, graphititest.Options{MCP: age, Merge: true})
			return m, func() { settle(t, s) }
		}
	}
	for name, open := range map[string]backend{
		"REST":           rest(graphititest.Options{}),
		"REST, older":    rest(graphititest.Options{OldFacts: true}),
		"MCP":            overMCP(graphititest.Today),
		"MCP, older":     overMCP(graphititest.Old),
		"embedded store": func(t *testing.T) (Memory, func()) { return openEmbedded(t), func() {} },
	} {
		t.Run(name, func(t *testing.T) {
			m, settled := open(t)
			ctx := t.Context()
			for i, text := range []string{"b: My dog is called Rex.", "a: My cat is called Miso.", "a: My dog is called Rex.", "a: The bird sings.", "b: The bird is blue."} {
				session, text, _ := strings.Cut(text, ": ")
				err := m.Write(ctx, "g", []Message{{
					Name: fmt.Sprint(session, i+1), Role: session, RoleType: RoleUser, Content: text,
					Timestamp: time.Now().Add(-time.Minute), SourceDescription: `{"session":"` + session + `"}`,
				}})
				if err != nil {
					t.Fatal(err)
				}
				settled()
			}
			of := func(session string) func(*Episode) bool {
				return func(e *Episode) bool { return strings.Contains(e.SourceDescription, `"`+session+`"`) }
			}
			for _, want := range [][]string{{"a2", "a3", "a4"}, nil} {
				names, err := m.ForgetEpisodes(ctx, "g", of("a"))
				if diff := cmp.Diff(want, names, cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); err != nil || diff != "" {
					t.Errorf("%v %s", err, diff)
				}
			}
			if names, err := m.ForgetEpisodes(ctx, "another", of("a")); err != nil || len(names) > 0 {
				t.Errorf("of a group that is not there: %q, %v", names, err)
			}
			for question, want := range map[string]string{"cat": "", "bird": "The bird is blue.", "dog": "My dog is called Rex."} {
				facts, err := m.Search(ctx, []string{"g"}, question, 9)
				var texts []string
				for _, f := range facts {
					texts = append(texts, f.Text)
				}
				if got := strings.Join(texts, "|"); err != nil || !strings.HasSuffix(got, want) || want == "" && got != "" || strings.Contains(got, "sings") {
					t.Errorf("%s: %q, %v", question, got, err)
				}
			}
			left, err := m.Episodes(ctx, "g", 9)
			if err != nil || len(left) != 2 || left[0].Name != "b1" || left[1].Name != "b5" {
				t.Errorf("left are %+v, %v", left, err)
			}
		})
	}
}

// TestForgottenEpisodesAreInNoFile, nor does a message that gets the number of
// one that is gone get anything of it.
func TestForgottenEpisodesAreInNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	e, err := OpenEmbedded(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	tell(t, e, "g", "1", "this stays", "ok")
	tell(t, e, "g", "2", "I am a xylophonist", "ok")
	if found(t, path) == 0 {
		t.Fatal("it was never there")
	}
	ctx := context.Background()
	if _, err := e.ForgetEpisodes(ctx, "g", func(e *Episode) bool { return strings.Contains(e.SourceDescription, `"2"`) }); err != nil {
		t.Fatal(err)
	}
	if n := found(t, path); n > 0 {
		t.Errorf("%d times in the files", n)
	}
	tell(t, e, "g", "3", "this is new", "ok")
	if got := search(t, e, "g", "who is a xylophonist?"); len(got) > 0 {
		t.Errorf("found %q", got)
	}
	if got := search(t, e, "g", "what stays?"); len(got) == 0 {
		t.Error("the others are not found any more")
	}
}
