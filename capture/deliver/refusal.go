package deliver

import (
	"cmp"
	"errors"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	refusalRemedy = "if it rejects all turns, run graphiti-proxy test-connection: this version of Graphiti, or a gateway in front of it, expects other messages than the proxy sends"

	// deadRemedy shows the operator the dead letters.
	deadRemedy = "run graphiti-proxy queue list --state dead"
)

// remedyOf returns the remedy for a failed call.
func remedyOf(err error) string {
	if !graphiti.Retryable(err) {
		return cmp.Or(graphiti.Remedy(err), refusalRemedy)
	}
	return cmp.Or(graphiti.Remedy(err), "nothing yet: delivery retries by itself; graphiti-proxy test-connection checks the memory")
}

// unsent reports whether a failed call certainly had no effect.
func unsent(err error) bool {
	var part *graphiti.PartError
	if errors.As(err, &part) && part.Accepted > 0 {
		return false
	}
	return graphiti.Unsent(err) || !graphiti.Retryable(err)
}
