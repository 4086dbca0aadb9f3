// Package cache owns the state that outlives a request, apart from the memory itself:
// decisions, sessions, snapshots of sessions, card entries, accepted tenants, the proofs of
// registered people, daily statistics, and generations. It also owns Recall, the cache of
// searches, which ends with the process.
//
// State consists of typed views of one small store. A view (Decisions, Sessions, Snapshots,
// Tenants, Proofs, Figures, Generations) encodes its values and decides what to hold in
// RAM. The store handles records: a kind, a key, a value, a list for the kinds that have
// lists, and scopes. One table (the kinds in store.go) defines the lifetime of each kind,
// and the length of its lists. The store of one process is a file with an SQLite table for each
// kind. A write is a transaction, and so is a forget. Expired records are swept.
//
// First write wins: a record marked first does not replace another. keep returns the key's
// value, and does not store a record after its caller has given up.
//
// Forgetting: a scope is a group, a session, or the facts of a group. Its generation, a
// record too, is the number of forgets at its last forget. A write carries the generation
// of its request. In the same transaction, the store compares it with the
// generations of the record's scopes. If one is newer, it stores the view's replacement, or
// nothing. forget removes the existing records of a scope, or leaves their rest (a decision
// without its block). A scope is raised before it is forgotten, so no late write can
// restore anything.
package cache
