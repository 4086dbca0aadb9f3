// Package graphiti owns what a memory is: the Memory interface and its
// implementations (an embedded store, Graphiti's REST service and its MCP
// server), the scopes
// a memory can have, and the group ids that keep one scope's memory apart
// from another's.
//
// It must not know of HTTP clients of the proxy, of request or answer
// dialects, or of what is done with a fact once it was found. Of our packages
// it may import cache/sqlite only.
package graphiti
