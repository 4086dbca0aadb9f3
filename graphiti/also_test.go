package graphiti

import (
	"slices"
	"testing"
)

// TestAlsoReads checks that groups of other clients are read after the caller's own, in the
// scope that fits, and that a name with an unknown or ambiguous placeholder is skipped.
func TestAlsoReads(t *testing.T) {
	own := Target{ScopeWorkspace, "own"}
	there := Who{User: "user:josh", Workspace: "path:/home/j/My App", Directory: "/home/j/My App/"}
	all := Also{Names: []string{"main", "opencode-{directory}__main", "opencode-{directory}__user-{login}", "user_{user}", "own"}, Home: "/home/j.b"}
	strict := Also{Names: []string{"main", "user_{user}"}, Proven: true}
	for name, tc := range map[string]struct {
		also Also
		who  Who
		want []string
	}{
		"in a project":        {all, there, []string{"workspace main", "workspace opencode-My_App__main", "user opencode-My_App__user-j_b", "user user_josh"}},
		"in a named project":  {all, Who{User: "user:josh", Workspace: "path:/home/j/My App"}, []string{"workspace main", "workspace opencode-My_App__main", "user opencode-My_App__user-j_b", "user user_josh"}},
		"in a repository":     {all, Who{User: "user:josh", Workspace: "github_repo:github.com/j/app"}, []string{"workspace main", "user user_josh"}},
		"in none":             {all, Who{User: "user:josh"}, []string{"user main", "user user_josh"}},
		"nobody":              {all, Who{}, []string{"user main"}},
		"a bot":               {all, Who{SystemActor: "bot"}, nil},
		"another's by a sign": {all, Who{User: "user:jo.sh"}, []string{"user main"}},
		"by a joint":          {all, Who{User: "user:x__user_josh"}, []string{"user main"}},
		"of another platform": {all, Who{User: "github_login:josh"}, []string{"user main"}},
		"a proven person":     {strict, Who{Tenant: "t", User: "user:josh", Proven: true}, []string{"user main", "user user_josh"}},
		"named as a group":    {Also{Names: []string{"{user}", "{directory}"}}, Who{User: "user:user_ben", Directory: "/x/graphiti_user_0123456789abcdef"}, nil},
		"a claimed one":       {strict, Who{Tenant: "t", User: "user:josh"}, nil},
	} {
		var got []string
		for _, t := range (Namer{Also: tc.also}).AlsoReads(tc.who, []Target{own})[1:] {
			got = append(got, string(t.Scope)+" "+t.Group)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	if got := (Namer{Also: all}).AlsoReads(there, nil); got != nil {
		t.Errorf("without a group of their own: %v", got)
	}
}
