package graphiti

import "fmt"

// RemainsError says that a deleted group, or a part of it, is not gone: the service
// still shows something of it.
type RemainsError struct {
	Group    string
	Episodes int // how many are listed
	Facts    int // how many a search finds

	// Unreachable says that the service cannot delete what it shows: it answers
	// "not found". Graphiti does so on FalkorDB: it shows the graph that is named
	// after the group, and deletes in its default one.
	Unreachable bool

	// Part says that not all of the group was to be deleted.
	Part bool
}

// Error holds no text of what remains.
func (e *RemainsError) Error() string {
	return fmt.Sprintf("the memory answered that it was deleted, and still shows %d episodes and %d facts", e.Episodes, e.Facts)
}

// OrNil returns e, or nil if nothing remains.
func (e *RemainsError) OrNil() error {
	if e.Episodes+e.Facts == 0 {
		return nil
	}
	return e
}

// remedy says what to do about it.
func (e *RemainsError) remedy() string {
	switch {
	case e.Unreachable && e.Part:
		return "this Graphiti cannot delete single messages of the group, as on FalkorDB, where its delete calls look into another graph: " +
			"delete all of the group with graphiti-proxy memory forget --group " + e.Group + ", or use Graphiti's MCP server of version 1.1.2 or newer, which can"
	case e.Unreachable:
		return "this Graphiti cannot delete the group, as on FalkorDB, where its delete calls look into another graph: delete all of the group with redis-cli GRAPH.DELETE " +
			e.Group + " on FalkorDB, and use Graphiti's MCP server of version 1.1.2 or newer, or Neo4j, to delete from here"
	}
	return "look at Graphiti's log for why it does not delete the group " + e.Group
}
