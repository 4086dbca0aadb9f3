// Package remote owns what Graphiti's two services have in common: how facts
// and episodes look on the wire, the proof that what was deleted is gone, and
// the checks that an operator runs.
//
// It must not know how a service is called. Of our packages it may import
// graphiti.
package remote
