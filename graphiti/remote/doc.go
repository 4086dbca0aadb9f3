// Package remote owns the common parts of the clients for Graphiti's two services: the wire
// format of facts and episodes, the proof that deleted data is gone, and the checks that an
// operator runs.
package remote
