// Package observe reports requests to operators: metrics, spans, and a line in
// the log.
//
// It owns the names of metrics and span attributes, the ids of requests, and
// what of a path may be logged. Nothing that was said is in what it writes, no
// credential, and group ids only as hashes. It must not know how a request is
// served. Of our packages it may import dialect, inject, graphiti (types) and
// proxy/wire.
package observe
