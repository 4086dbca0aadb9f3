package graphiti

import "testing"

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
