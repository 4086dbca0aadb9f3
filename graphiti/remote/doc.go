// Package remote owns what Graphiti's two services have in common: the wire format of
// facts and episodes, the proof that deleted data is gone, and the checks that an operator
// runs.
//
// It must not know how a service is called. Of our packages it imports only graphiti.
package remote
