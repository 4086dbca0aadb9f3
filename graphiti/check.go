package graphiti

import "strings"

// Names and text of probe messages, which check that the backend stores messages. Recall
// never searches their groups.
const (
	CheckGroupPrefix = "graphiti_proxy_probe_"
	CheckNamePrefix  = "graphiti-proxy.probe."
	ownGroups        = "graphiti_proxy_"

	checkWord = "graphiti-proxy-check"

	// CheckText states a fact, so that Graphiti extracts one from it.
	CheckText = checkWord + " stores its memory in Graphiti. The sentence about " + checkWord + " is deleted again."
)

// ofCheck reports whether a fact comes from a probe message. Some databases mix up groups,
// so the group alone does not decide.
func ofCheck(f *Fact) bool {
	return strings.HasPrefix(f.Group, ownGroups) || strings.HasPrefix(f.Episode, CheckNamePrefix) ||
		strings.Contains(strings.ToLower(f.Text), checkWord)
}

// WithoutChecks removes facts of probe messages, unless groups contains a probe group. It
// reuses the array of facts.
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
