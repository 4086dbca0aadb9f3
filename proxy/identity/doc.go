// Package identity says who a request is from: it reads what the request claims
// (person, session, workspace, agent, system actor), what its credential
// proves, and who is registered.
//
// It owns the tables of sources (sources.go), credentials as fingerprints, and the
// registry of people. It must not know what a request asks for, nor connections. Of
// our packages it may import graphiti (keys), internal/dialect and its registry
// (the fields of a parsed body, where each API has its credential) and
// proxy/workspace (repositories).
package identity
