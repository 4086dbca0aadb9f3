package inspector

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// manyTurns returns a conversation of n turns with hostile texts.
func manyTurns(n int) *service.Explained {
	strength := 0.7
	long := strings.Repeat(hostile, 100)
	x := &service.Explained{Conversation: service.Conversation{Session: long, Hash: "abc", Begins: hostile, In: hostile, Group: "g"}, AllTurns: n, Note: hostile,
		Memories: []service.Kept{{Name: hostile, Scope: "workspace", Group: "g"}}}
	for i := range n {
		t := service.Turn{ID: fmt.Sprintf("t%d", i), Time: hostile, Decision: &service.Decision{Block: long, Facts: 8}, Messages: []service.Record{
			{ID: fmt.Sprintf("m%d", i), Role: "user", Text: long, Time: "2026-11-25T09:00:00Z", Group: "g"},
			{ID: fmt.Sprintf("a%d", i), Role: hostile, Text: long, Where: "queue"}}}
		switch i % 4 {
		case 1:
			t.Decision = nil
		case 2:
			t.Decision = &service.Decision{Reason: hostile, Why: hostile}
		case 3:
			t.Decision = &service.Decision{Gone: true, Facts: 3}
		}
		for j := range 16 {
			p := service.Piece{Verdict: "shown", Line: long, Kind: "message", Scope: hostile, Group: "g", Strength: &strength, ID: `m"><b>`, Text: long, Role: hostile, Time: hostile, Conversation: hostile, Turn: hostile}
			switch {
			case j > 7:
				p.Verdict, p.Line = hostile, ""
			case j == 3:
				p.Kind = "card"
			case j == 4:
				p = service.Piece{Verdict: "shown", Kind: hostile}
			}
			if t.Decision != nil {
				t.Decision.Pieces = append(t.Decision.Pieces, p)
			}
		}
		x.Turns = append(x.Turns, t)
	}
	return x
}

// TestLongConversationsFitAPage checks that a page shows the newest turns that fit it,
// links to the others, and escapes hostile texts.
func TestLongConversationsFitAPage(t *testing.T) {
	s := newSite(t, servicetest.Open(t, t.TempDir(), servicetest.Options{}))
	for _, n := range []int{0, 1, 5, 30} {
		w := httptest.NewRecorder()
		v := &visit{Visit: Visit{Caller: s.caller}, p: s.pages, w: w, r: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/conversation/abc?skip=3", nil), room: roomForText}
		must(t, v.shownTurns(manyTurns(n), "abc", 3))
		body := w.Body.String()
		s.wellFormed(t, "a conversation", body)
		s.harmless(t, "a conversation", body)
		if all := len(body) + s.filesOf(body); all > maxPageBytes {
			t.Errorf("%d turns: %d bytes; %d are the most", n, all, maxPageBytes)
		}
		shown := strings.Count(body, `<article class="turn"`)
		if shown == 0 && n > 0 || shown > 0 && !strings.Contains(body, fmt.Sprintf(`id="t-t%d"`, n-1)) {
			t.Errorf("%d turns: %d shown", n, shown)
		}
		if (shown+3 < n) != strings.Contains(body, fmt.Sprintf("skip=%d", 3+shown)) {
			t.Errorf("%d turns, %d shown: it does not lead to the others: %v", n, shown, links.FindAllString(body, -1))
		}
	}
}
