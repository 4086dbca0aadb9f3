// Package graphiti owns what a memory is: the Memory type, made of roles, and its types,
// the scopes a memory can have, the group ids that keep one scope's memory
// apart from another's, and the errors and diagnoses that all memories share.
//
// It must not know how a memory stores anything or how a service is called:
// those are graphiti/embedded, graphiti/rest and graphiti/mcp. It imports no
// package of ours.
package graphiti
