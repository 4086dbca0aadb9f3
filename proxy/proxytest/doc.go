// Package proxytest owns a fake model provider: it validates requests as strictly as the
// real APIs, records them, and answers from their contents. Tests and the benchmarks use
// it.
//
// It must not import testing or another package of this module.
package proxytest
