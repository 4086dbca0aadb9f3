package graphiti

import "testing"

// TestTenantsAreNeverAlike checks that tenants differ if their parts have other boundaries,
// if one spells another, or if they are of different kinds.
func TestTenantsAreNeverAlike(t *testing.T) {
	a, b := Fingerprint([]byte("a")), Fingerprint([]byte("b"))
	seen := make(map[string]string)
	add := func(name string, set func(*Who)) {
		var w Who
		set(&w)
		if other, ok := seen[w.Tenant]; ok || len(w.Tenant) != 64 {
			t.Errorf("the tenant of %s is %q, that of %q is the same: %v; want a different one of 64 digits", name, w.Tenant, other, ok)
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
		t.Error("Digest is the same for parts that end at different places")
	}
	var one, two Who
	one.SetCredentials("", a, b)
	two.SetCredentials("", b, a, b)
	if one != two {
		t.Errorf("the tenant of a, b is %q, that of b, a, b is %q; want the same", one.Tenant, two.Tenant)
	}
}
