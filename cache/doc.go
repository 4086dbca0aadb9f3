// Package cache owns the state that outlives a request, beside the memory itself:
// decisions, sessions, snapshots of sessions and lists of card entries, accepted
// tenants, the proofs of registered people, and generations. Each has a type of
// its own in State, with a file or Redis behind it. It also owns Recall, the cache
// of searches, which ends with the process.
//
// It must not know what a block says or how a conversation is written: keys are
// hashes, and texts are opaque. Of our packages it may import cache/sqlite and
// cache/redis, and inject for what a decision is.
package cache
