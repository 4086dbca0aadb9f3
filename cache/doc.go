// Package cache owns the state that outlives a request, beside the memory itself:
// decisions, sessions, snapshots of sessions and lists of card entries, accepted
// tenants, the proofs of registered people, the figures of days, and generations. It
// also owns Recall, the cache of searches, which ends with the process.
//
// State is typed views of one small store. A view (Decisions, Sessions, Snapshots,
// Tenants, Proofs, Figures, Generations) knows how its values are written, and what it
// keeps in RAM. The store knows records: a kind, a key, a value, a list for the kinds that
// have lists, and scopes. What the records of a kind have in common stands in one
// table (kinds): how long they live, how many a list keeps, whether replicas hear of
// a write. There are two stores, which keep the same promises:
//
//   - file: a table for each kind, in SQLite. A write is a transaction, forgetting too. Expired
//     records are swept.
//   - replicas: a key in Redis for each record, sorted sets as indexes of scopes and
//     lists. A write is one script. Records expire by themselves.
//
// First write wins: a record that is marked first is stored only for a key that has
// none. keep returns the value that the key has then, and stores nothing when its
// caller has given up.
//
// Forgetting: a scope is a group, a session, or what was found in a group. Its
// generation, a record too, is the number of forgets when it was forgotten last. A
// write carries the generation of its request, and the store compares it with those
// of the record's scopes in the same transaction or script: when one is newer,
// nothing is stored, or what the view gave in its place. forget ends the records of a
// scope that are there: they are removed, or their rest stays (a decision without
// its block). So a scope is raised first and forgotten then, and no late write can
// bring anything back.
//
// The package must not know what a block says or how a conversation is written: keys
// are hashes, and texts are opaque. A store must not know what a view's values mean.
// Of our packages it may import cache/sqlite and cache/redis, inject for what a
// decision is, and graphiti for who somebody is.
package cache
