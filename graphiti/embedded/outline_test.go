package embedded

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// manyMessages writes n messages into a group, in conversations of twenty.
func manyMessages(t testing.TB, e *Store, group string, n int) {
	t.Helper()
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for from := 0; from < n; from += 500 {
		var list []graphiti.Message
		for i := from; i < min(from+500, n); i++ {
			role := []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant}[i%2]
			list = append(list, graphiti.Message{
				Name: graphiti.EpisodeName(fmt.Sprintf("%032x", i/2), role), RoleType: role, Timestamp: at.Add(time.Duration(i) * time.Second),
				Content:           fmt.Sprintf("Message %d is about the database of project %d, which Miriam Weber runs on otter%d. ", i, i%97, i%13) + strings.Repeat("It says more. ", 20),
				SourceDescription: fmt.Sprintf(`{"v":1,"client":"codex","session":"%012x","workspace":"github_repo:github.com/acme/widgets"}`, i/20),
			})
		}
		if err := e.Write(t.Context(), group, list); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOutline: it tells of every message what is known without its text, also of those
// that come later, and not of those that are deleted.
func TestOutline(t *testing.T) {
	e, err := Open(filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	read := func(group string) (all []graphiti.Heading) {
		t.Helper()
		if err := e.Outline(t.Context(), group, func(h *graphiti.Heading) { all = append(all, *h) }); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := read("g"); all != nil {
		t.Errorf("of no group: %v", all)
	}
	manyMessages(t, e, "g", 42)
	all := read("g")
	if len(all) != 42 || all[0].Talk != "000000000000" || all[41].Talk != "000000000002" || all[0].Turn != all[1].Turn || all[1].Turn == all[2].Turn ||
		all[0].Name == all[1].Name || all[1].Role != graphiti.RoleAssistant || !all[1].Said.Equal(time.Date(2026, 11, 1, 0, 0, 1, 0, time.UTC)) {
		t.Errorf("%d: %+v", len(all), all[:min(len(all), 2)])
	}
	same := graphiti.Message{Name: graphiti.EpisodeName(fmt.Sprintf("%032x", 0), graphiti.RoleUser), RoleType: graphiti.RoleUser, Content: "x"}
	for _, m := range []graphiti.Message{same, {Name: "somebody else's", RoleType: graphiti.RoleSystem, Content: "y", SourceDescription: "none"}} {
		if err := e.Write(t.Context(), "other", []graphiti.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	if other := read("other"); len(other) != 2 || other[0].Name != all[0].Name || other[1].Turn != 0 || other[1].Talk != "" || other[1].Role != graphiti.RoleSystem {
		t.Errorf("of another group: %+v", other)
	}
	manyMessages(t, e, "g", 50)
	if all = read("g"); len(all) != 50 {
		t.Errorf("%d messages when eight have come, want 50", len(all))
	}
	list, err := e.EpisodesAt(t.Context(), "g", []int64{all[40].Place, all[3].Place, 1 << 30})
	if err != nil || len(list) != 2 || !strings.Contains(list[0].Content, "Message 3 ") || !strings.Contains(list[1].Content, "Message 40 ") {
		t.Errorf("at two places: %+v, %v", list, err)
	}
	if _, err := e.ForgetEpisodes(t.Context(), "g", func(ep *graphiti.Episode) bool { return strings.Contains(ep.Content, "Message 7 ") }); err != nil {
		t.Fatal(err)
	}
	if all = read("g"); len(all) != 49 {
		t.Errorf("%d messages when one was deleted, want 49", len(all))
	}
	if err := e.Forget(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	if all = read("g"); all != nil {
		t.Errorf("%d messages when all were deleted", len(all))
	}
}

// BenchmarkOutline is how long 100,000 messages take: read from the file, and known.
func BenchmarkOutline(b *testing.B) {
	e, err := Open(filepath.Join(b.TempDir(), "memory.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	manyMessages(b, e, "g", 100_000)
	for _, known := range []bool{false, true} {
		b.Run(fmt.Sprintf("known=%t", known), func(b *testing.B) {
			n := 0
			for b.Loop() {
				if !known {
					e.outlines.deleted("g")
				}
				if err := e.Outline(b.Context(), "g", func(*graphiti.Heading) { n++ }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
