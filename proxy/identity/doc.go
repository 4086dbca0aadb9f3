// Package identity determines the caller of a request. It reads the claims of the request
// (person, session, project, agent, system actor), its credential, and the registry of
// people.
//
// It owns the tables of sources (sources.go), the fingerprints of credentials, and the
// registry. It must not depend on the content of a request or on connections. Of our
// packages it may import graphiti (keys), internal/dialect and its registry (body fields,
// where each API puts its credential) and proxy/workspace (repositories).
package identity
