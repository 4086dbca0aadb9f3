package graphiti

import "strings"

// What this proxy writes by itself, to find out whether the memory keeps
// anything. It stands in a group of its own that is never searched for a
// prompt.
const (
	CheckGroupPrefix = "graphiti_proxy_probe_"
	CheckNamePrefix  = "graphiti-proxy.probe."
	ownGroups        = "graphiti_proxy_"

	checkWord = "graphiti-proxy-check"

	// CheckText is a fact, so that something can be read from it.
	CheckText = checkWord + " stores its memory in Graphiti. The sentence about " + checkWord + " is deleted again."
)

// ofCheck reports whether a fact was read from a message of ours and not from a
// conversation. Some databases mix up their groups.
func ofCheck(f *Fact) bool {
	return strings.HasPrefix(f.Group, ownGroups) || strings.HasPrefix(f.Episode, CheckNamePrefix) ||
		strings.Contains(strings.ToLower(f.Text), checkWord)
}

// WithoutChecks leaves out what our own messages said, unless their group was
// asked for.
func WithoutChecks(groups []string, facts []Fact) []Fact {
	for _, g := range groups {
		if strings.HasPrefix(g, ownGroups) {
			return facts
		}
	}
	kept := facts[:0]
	for i := range facts {
		if !ofCheck(&facts[i]) {
			kept = append(kept, facts[i])
		}
	}
	return kept
}
