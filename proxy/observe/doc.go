// Package observe reports requests to operators: metrics, spans, and a line in
// the log.
//
// It owns the names of metrics and span attributes, the ids of requests, and the removal of
// secrets from logged paths. It writes no part of a conversation and no credential, and group
// ids only as hashes.
package observe
