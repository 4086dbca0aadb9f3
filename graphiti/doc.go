// Package graphiti owns Memory, a backend divided into roles, with its types, the scopes,
// the group IDs that separate them, and the errors and diagnoses that all backends share.
//
// It must not store memory or call services; graphiti/embedded, graphiti/rest and
// graphiti/mcp do. It imports no other package of this module.
package graphiti
