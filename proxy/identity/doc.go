// Package identity determines the caller of a request. It reads the claims of the request
// (person, session, project, agent, system actor), its credential, and the registry of
// people.
//
// It owns the tables of sources (sources.go), the fingerprints of credentials, and the
// registry.
package identity
