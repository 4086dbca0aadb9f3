package graphiti

import "context"

// BroadQuery returns a query that finds the facts of a group whatever they are
// about: most indexes of Graphiti hold the group's id beside the text. For the
// others it adds frequent words.
func BroadQuery(group string) string {
	return group + " user assistant person name called named likes prefers uses works lives wants needs says said about project agent system team"
}

// Unlisted reports whether a search finds something in a group that lists nothing,
// as with an older MCP server on FalkorDB. Call it before you take a group for empty.
func (m *Memory) Unlisted(ctx context.Context, group string) (bool, error) {
	facts, err := m.Search(ctx, []string{group}, BroadQuery(group), 1)
	return len(facts) > 0, err
}

// UnlistedError says that the backend does not list the messages of a group that it
// has.
type UnlistedError struct{ Group string }

// Error implements error.
func (e *UnlistedError) Error() string {
	return "the memory lists nothing of it, and a search finds something there"
}

func (e *UnlistedError) remedy() string {
	return "see what it knows with graphiti-proxy memory search --group " + e.Group +
		"; to list messages run a Graphiti MCP server that lists them, or Graphiti on Neo4j; memory forget --group " + e.Group + " deletes all of the group"
}
