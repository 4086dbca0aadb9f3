// Package cache owns the state that makes requests fast and conversations
// stable: what searches found, which block stands before which message, and
// which session a conversation belongs to.
//
// It must not know what a block says or how a conversation is written: keys
// are bytes, values are opaque. Of our packages it may import cache/sqlite and
// cache/redis, and inject for what a decision is.
package cache
