// Package cache owns the state that outlives a request, apart from the memory itself: decisions,
// sessions, their notes, card entries, accepted tenants, proofs of people, statistics, and generations.
//
// State has typed views of one small store, which decide what to hold in RAM. A record has a kind,
// a key, a value, and for some kinds a list and scopes. The first write of a decision wins.
//
// A scope is a group, a session, or the facts of a group. Its generation is the number of forgets at its
// last one. A write carries the generation of its request, and one transaction compares it with those
// of the record's scopes. A scope is raised before it is forgotten, so no late write restores anything.
package cache
