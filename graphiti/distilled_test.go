package graphiti

import "testing"

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
