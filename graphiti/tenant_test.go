package graphiti

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTenantsAreNeverAlike: neither by where parts end, nor by what is spelt in
// them, nor by their kind.
func TestTenantsAreNeverAlike(t *testing.T) {
	a, b := Fingerprint([]byte("a")), Fingerprint([]byte("b"))
	seen := make(map[string]string)
	add := func(name string, set func(*Who)) {
		var w Who
		set(&w)
		if other, ok := seen[w.Tenant]; ok || len(w.Tenant) != 64 {
			t.Errorf("%s and %s: %s", name, other, w.Tenant)
		}
		seen[w.Tenant] = name
	}
	person := func(key string) func(*Who) { return func(w *Who) { w.User = key; w.SetPerson() } }
	shown := func(list ...string) func(*Who) { return func(w *Who) { w.SetCredentials("", list...) } }
	add("josh", person("user:josh"))
	add("who is called like a fingerprint", person(a))
	add("who is called like two", person(a+" "+b))
	add("a credential", shown(a))
	add("another", shown(b))
	add("both", shown(a, b))
	add("a credential at a named upstream", func(w *Who) { w.SetCredentials("local", a) })
	add("at another", func(w *Who) { w.SetCredentials("more", a) })
	add("two at a named upstream", func(w *Who) { w.SetCredentials("local", a, b) })
	add("one that spells both", shown(Fingerprint([]byte(a+" "+b))))
	add("one that spells josh", shown(Fingerprint([]byte("person:user:josh"))))
	add("one beside itself and another", shown(a, a, Fingerprint([]byte("c"))))
	if Digest("k", "ab", "c") == Digest("k", "a", "bc") || Digest("ka", "b") == Digest("k", "ab") || Digest("k", "a") == Digest("k", "a", "") {
		t.Error("parts run into each other")
	}
	var one, two Who
	one.SetCredentials("", a, b)
	two.SetCredentials("", b, a, b)
	if one != two {
		t.Error("the order of credentials counts")
	}
}

// TestOldTenants are read and not written, and only where the tenant is part of
// the name; who could spell another's has none.
func TestOldTenants(t *testing.T) {
	for credential, spells := range map[string]bool{
		"sk-abc": false, "person": false, "Person:x": false, strings.Repeat("a", 64): false,
		"person:": true, "person:user:josh": true, strings.Repeat("a", 64) + " " + strings.Repeat("0", 64): true,
		strings.Repeat("a", 64) + " " + strings.Repeat("0", 64) + " " + strings.Repeat("F", 64): true,
	} {
		if SpellsTenant([]byte(credential)) != spells {
			t.Errorf("%q: %v", credential, !spells)
		}
	}
	w := Who{User: "user:josh", Workspace: "w", Agent: "ava"}
	w.SetPerson()
	n := Namer{Raw: true}
	was := "t" + Fingerprint([]byte("person:user:josh"))[:24] + "_workspace_w"
	want := []Target{
		{ScopeWorkspace, "t" + w.Tenant[:24] + "_workspace_w"}, {ScopeWorkspace, was},
		{ScopeUser, "user_josh"}, {ScopeAgent, "agent_ava__user_josh"},
	}
	if diff := cmp.Diff(want, n.Reads(w, true)); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	for _, target := range n.Writes(w) {
		if target.Group == was {
			t.Error("the old group is written to")
		}
	}
	if reads := n.Reads(Who{User: "user:josh", Workspace: "w"}, false); len(reads) != 1 {
		t.Errorf("single mode reads %v", reads)
	}
}
