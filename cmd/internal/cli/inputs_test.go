package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

type word string

type Inner struct {
	User  string `json:"user,omitempty" help:"a person"`
	Group string `json:"group,omitempty" help:"a group"`
}

type outer struct {
	Inner
	State word     `json:"state" help:"a state"`
	Last  int      `json:"last" help:"how many"`
	All   bool     `json:"all" flag:"explain" help:"all of them"`
	IDs   []string `json:"ids" help:"some"`
	Text  string   `json:"text"`
}

// TestInputFlags: flags fill the fields with a help tag, and their defaults are the fields'
// values.
func TestInputFlags(t *testing.T) {
	in := outer{Last: 20}
	c := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	InputFlags(c, &in, "group")
	for _, name := range []string{"text", "group", "all"} {
		if c.Flags().Lookup(name) != nil {
			t.Errorf("got a flag --%s, want none", name)
		}
	}
	if got := c.Flags().Lookup("last").DefValue; got != "20" {
		t.Errorf("default of --last: got %s, want 20", got)
	}
	c.SetArgs([]string{"--user", "josh", "--state", "dead", "--last", "3", "--explain", "--ids", "a,b"})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	want := outer{Inner: Inner{User: "josh"}, State: "dead", Last: 3, All: true, IDs: []string{"a", "b"}}
	if diff := cmp.Diff(want, in, cmp.AllowUnexported(outer{})); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
	if err := c.Flags().Set("user", " "); err == nil {
		t.Error("an empty --user was accepted, want an error")
	}
}
