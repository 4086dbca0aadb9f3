// Package graphiti owns Memory, a backend divided into roles, with its types, the scopes,
// the group IDs that separate them, and the errors and diagnoses that all backends share.
package graphiti
