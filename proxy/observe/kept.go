package observe

import "github.com/graphiti-proxy/graphiti-proxy/dialect/client"

// Kept looks at what is kept of a turn: the words of a person begin with a tag where
// a client wraps them in one that no rule knows. kind is that of a curated text,
// which is no person's; product is what the client calls itself.
func (o *Observer) Kept(kind, product, words string) {
	if kind == "" && client.UnknownTag(words) {
		o.unknownTags.add(client.Named(product))
	}
}

// UnknownTags are the turns since the process began whose kept words begin with a
// tag that no rule knows, by the client's name; without those that have none.
func (o *Observer) UnknownTags() map[string]int64 {
	all := make(map[string]int64)
	for name, s := range o.unknownTags.known {
		if n := s.n.Load(); n > 0 {
			all[name] = n
		}
	}
	return all
}
