// Package observe reports requests to operators: metrics, spans, and a line in
// the log.
//
// It owns the names of metrics and span attributes, the ids of requests, and which
// part of a path may be logged. It writes nothing of a conversation, no credential,
// and group ids only as hashes. It must not know how a request is served. Of our
// packages it imports dialect and its registry, inject, graphiti (types) and
// proxy/wire.
package observe
