package graphiti_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestForgettingEpisodes checks that a forget removes the selected episodes and the facts
// first read from them, in every backend, and leaves facts that other episodes stated
// before.
func TestForgettingEpisodes(t *testing.T) {
	type backend func(*testing.T) (*graphiti.Memory, func())
	viaREST := func(o graphititest.Options) backend {
		return func(t *testing.T) (*graphiti.Memory, func()) {
			o.Merge = true
			s, r := overREST(t, o)
			return r, func() { settle(t, s) }
		}
	}
	viaMCP := func(age graphititest.Age) backend {
		return func(t *testing.T) (*graphiti.Memory, func()) {
			s, m := overMCP(t, graphititest.Options{MCP: age, Merge: true})
			return m, func() { settle(t, s) }
		}
	}
	for name, open := range map[string]backend{
		"REST":           viaREST(graphititest.Options{}),
		"REST, older":    viaREST(graphititest.Options{OldFacts: true}),
		"MCP":            viaMCP(graphititest.Today),
		"MCP, earlier":   viaMCP(graphititest.Earlier),
		"MCP, older":     viaMCP(graphititest.Old),
		"embedded store": func(t *testing.T) (*graphiti.Memory, func()) { return openEmbedded(t), func() {} },
	} {
		t.Run(name, func(t *testing.T) {
			m, settled := open(t)
			ctx := t.Context()
			for i, text := range []string{"b: My dog is called Rex.", "a: My cat is called Miso.", "a: My dog is called Rex.", "a: The bird sings.", "b: The bird is blue."} {
				session, text, _ := strings.Cut(text, ": ")
				err := m.Write(ctx, "g", []graphiti.Row{{
					Name: fmt.Sprint(session, i+1), Speaker: session, Role: graphiti.RoleUser, Text: text,
					Said: time.Now().Add(-time.Minute), Source: `{"session":"` + session + `"}`,
				}})
				must(t, err)
				settled()
			}
			of := func(session string) func(*graphiti.Row) bool {
				return func(e *graphiti.Row) bool { return strings.Contains(e.Source, `"`+session+`"`) }
			}
			for _, want := range [][]string{{"a2", "a3", "a4"}, nil} {
				names, err := m.ForgetEpisodes(ctx, "g", of("a"))
				if diff := cmp.Diff(want, names, cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); err != nil || diff != "" {
					t.Errorf("forgotten episodes: %v (-want +got):\n%s", err, diff)
				}
			}
			if names, err := m.ForgetEpisodes(ctx, "another", of("a")); err != nil || len(names) > 0 {
				t.Errorf("forgotten episodes of a group that does not exist: %q, %v; want none", names, err)
			}
			for question, want := range map[string]string{"cat": "", "bird": "The bird is blue.", "dog": "My dog is called Rex."} {
				facts, err := m.Search(ctx, []string{"g"}, question, 9)
				var texts []string
				for _, f := range facts {
					texts = append(texts, f.Text)
				}
				if got := strings.Join(texts, "|"); err != nil || !strings.HasSuffix(got, want) || want == "" && got != "" || strings.Contains(got, "sings") {
					t.Errorf("search for %q: %q, %v; want it to end with %q", question, got, err, want)
				}
			}
			var left []string
			each := func(r graphiti.Row) error { left = append(left, r.Name); return nil }
			if m.Arrivals != nil {
				must(t, m.Export(ctx, "g", each))
			} else {
				for r, err := range m.Rows(ctx, "g", graphiti.Filter{Text: true}) {
					must(t, err)
					_ = each(r)
				}
			}
			if got := strings.Join(left, " "); got != "b1 b5" {
				t.Errorf("got %q after a forget, want b1 and b5", got)
			}
		})
	}
}
