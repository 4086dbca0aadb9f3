package graphiti

import "context"

// BroadQuery finds the facts of a group whatever they are about: Graphiti's
// indexes hold the group's id beside the text. Where one does not, the words
// find most.
func BroadQuery(group string) string {
	return group + " user assistant person name called named likes prefers uses works lives wants needs says said about project agent system team"
}

// Unlisted reports whether a group of which nothing is listed holds something
// all the same: an MCP server on FalkorDB lists nothing, and a search finds what
// is there. Whoever takes a group for empty asks it first.
func (m *Memory) Unlisted(ctx context.Context, group string) (bool, error) {
	facts, err := m.Search(ctx, []string{group}, BroadQuery(group), 1)
	return len(facts) > 0, err
}

// UnlistedError says that the messages of a group cannot be had.
type UnlistedError struct{ Group string }

// Error implements error.
func (e *UnlistedError) Error() string {
	return "the memory lists nothing of it, and a search finds something there"
}

func (e *UnlistedError) remedy() string {
	return "see what it knows with graphiti-proxy memory search --group " + e.Group +
		"; to list messages run a Graphiti MCP server that lists them, or Graphiti on Neo4j; memory forget --group " + e.Group + " deletes all of the group"
}
