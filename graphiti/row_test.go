package graphiti

import "testing"

func TestParseID(t *testing.T) {
	id := IDOf("a name")
	if got, ok := ParseID(id.String()); !ok || got != id {
		t.Errorf("ParseID(%q) = %v, %v, want %v", id, got, ok, id)
	}
	for _, text := range []string{"", "x", "'", "ABCDEF012345", id.String() + "00", id.String()[1:]} {
		if got, ok := ParseID(text); ok {
			t.Errorf("ParseID(%q) = %v, want no ID", text, got)
		}
	}
}

func TestShortenMiddle(t *testing.T) {
	for _, tc := range []struct {
		s    string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"head then tail", 9, "head-tail"},
		{"éééééüüüüü", 5, "éé-üü"},
		{"abcdefghij", 4, "ab-j"},
		{"abcdefghij", 1, "-"},
	} {
		if got := ShortenMiddle(tc.s, "-", tc.n); got != tc.want {
			t.Errorf("ShortenMiddle(%q, %d) = %q, want %q", tc.s, tc.n, got, tc.want)
		}
	}
}

func TestDistilled_OfUser(t *testing.T) {
	for _, tc := range []struct {
		fact Distilled
		want bool
	}{
		{Distilled{Role: RoleUser, Kind: "identity", About: "the user"}, true},
		{Distilled{Role: RoleUser, Kind: "place", About: "The user"}, true},
		{Distilled{Role: RoleUser, Kind: "preference", About: "dates"}, true},
		{Distilled{Role: RoleUser, Kind: "rule", About: "the user"}, false},
		{Distilled{Role: RoleAssistant, Kind: "preference", About: "the user"}, false},
		{Distilled{Role: RoleUser, Kind: "place", About: "the state file"}, false},
		{Distilled{Role: RoleUser, Kind: "other", About: "the user"}, false}, // their health, say
	} {
		if got := tc.fact.OfUser(); got != tc.want {
			t.Errorf("a %s of %q, from %s: matters in all projects: got %v, want %v", tc.fact.Kind, tc.fact.About, tc.fact.Role, got, tc.want)
		}
	}
}
