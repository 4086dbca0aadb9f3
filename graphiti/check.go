package graphiti

import "strings"

// Names and text of the messages that the proxy writes itself, to find out whether
// the memory keeps anything. Their groups are never searched for a prompt.
const (
	CheckGroupPrefix = "graphiti_proxy_probe_"
	CheckNamePrefix  = "graphiti-proxy.probe."
	ownGroups        = "graphiti_proxy_"

	checkWord = "graphiti-proxy-check"

	// CheckText states a fact, so that Graphiti extracts one from it.
	CheckText = checkWord + " stores its memory in Graphiti. The sentence about " + checkWord + " is deleted again."
)

// ofCheck reports whether a fact comes from a message of the proxy's own and not
// from a conversation. Some databases mix up their groups.
func ofCheck(f *Fact) bool {
	return strings.HasPrefix(f.Group, ownGroups) || strings.HasPrefix(f.Episode, CheckNamePrefix) ||
		strings.Contains(strings.ToLower(f.Text), checkWord)
}

// WithoutChecks removes the facts that come from the proxy's own messages, unless
// groups has one of theirs. It reuses the array of facts.
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
