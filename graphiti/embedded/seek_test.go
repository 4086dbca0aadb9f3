package embedded

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestSeek finds what is meant and nothing else, and reads no text of the rest.
func TestSeek(t *testing.T) {
	e := openEmbedded(t)
	write := func(group string, list ...graphiti.Message) {
		t.Helper()
		if err := e.Write(t.Context(), group, list); err != nil {
			t.Fatal(err)
		}
	}
	message := func(name, session, text string) graphiti.Message {
		return graphiti.Message{Name: name, RoleType: graphiti.RoleUser, Content: text, Timestamp: said, SourceDescription: `{"session":"` + session + `"}`}
	}
	write("g", message("a", "s1", "one"), message("b", "s2", "two"), message(`x"];--`, "s1", "three"), message("d", `x\",\"n\":\"s1`, "not of s1"))
	write("h", message("a", "s1", "of another group"))
	list, err := e.Episodes(t.Context(), "g", 10)
	if err != nil {
		t.Fatal(err)
	}
	other, err := e.Episodes(t.Context(), "h", 10)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		s    graphiti.Sought
		want string
	}{
		"nothing":             {graphiti.Sought{}, ""},
		"a conversation":      {graphiti.Sought{Session: "s1"}, `a x"];--`},
		"no conversation":     {graphiti.Sought{Session: "%"}, ""},
		"names":               {graphiti.Sought{Names: []string{"b", "gone", `x"];--`}}, `b x"];--`},
		"an id":               {graphiti.Sought{Message: graphiti.MessageID("b")}, "b"},
		"an id that is gone":  {graphiti.Sought{Message: "'", Names: nil}, ""},
		"by the store's ids":  {graphiti.Sought{UUIDs: []string{list[1].UUID, other[0].UUID, "1 OR 1=1", "99"}}, "b"},
		"all of them, once":   {graphiti.Sought{Session: "s1", Names: []string{"a"}, Message: graphiti.MessageID("a"), UUIDs: []string{list[0].UUID, list[1].UUID}}, `a b x"];--`},
		"what looks like one": {graphiti.Sought{Session: `x","n":"s1`}, "d"},
	} {
		var got []string
		err := e.Seek(t.Context(), "g", tc.s, func(ep graphiti.Episode) error { got = append(got, ep.Name); return nil })
		if err != nil || strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tc.want)
		}
		var all []string // as a backend that can only list
		plain := &graphiti.Memory{Lister: struct{ graphiti.Lister }{e}}
		err = plain.Seek(t.Context(), "g", tc.s, func(ep graphiti.Episode) error { all = append(all, ep.Name); return nil })
		if want := append([]string(nil), got...); err != nil || !slices.Equal(all, want) {
			t.Errorf("%s, listed: %q, %v; want %q", name, all, err, want)
		}
	}
	if err := e.Memory().Seek(t.Context(), "nobody's", graphiti.Sought{Session: "s1"}, func(graphiti.Episode) error { t.Error("found"); return nil }); err != nil {
		t.Error(err)
	}
}

// BenchmarkSeek is over 100,000 messages of one group, in conversations of 40.
func BenchmarkSeek(b *testing.B) {
	e := openEmbedded(b)
	text := strings.Repeat("some words about a garden ", 12)
	name := func(n int) string { return graphiti.EpisodeName(fmt.Sprintf("%032x", n), graphiti.RoleUser) }
	for n := 0; n < 100_000; {
		var list []graphiti.Message
		for range 1000 {
			n++
			list = append(list, graphiti.Message{Name: name(n), RoleType: graphiti.RoleUser, Content: text, Timestamp: time.Unix(int64(n), 0),
				SourceDescription: fmt.Sprintf(`{"source":"graphiti-proxy","scope":"user","client":"opencode","session":"%012x"}`, n/40)})
		}
		if err := e.Write(b.Context(), "g", list); err != nil {
			b.Fatal(err)
		}
	}
	for what, s := range map[string]graphiti.Sought{
		"conversation": {Session: fmt.Sprintf("%012x", 1200)}, "names": {Names: []string{name(7), name(70_000)}}, "id": {Message: graphiti.MessageID(name(77))},
	} {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				found := 0
				if err := e.Seek(b.Context(), "g", s, func(graphiti.Episode) error { found++; return nil }); err != nil || found == 0 {
					b.Fatal(found, err)
				}
			}
		})
	}
}
