// Package remote owns the common parts of the clients for Graphiti's two services: the wire
// format of facts and episodes, the proof that deleted data is gone, and the checks that an
// operator runs.
//
// It must not know the calls of a service. Of our packages it imports only graphiti.
package remote
