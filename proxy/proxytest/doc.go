// Package proxytest owns a stand-in for a provider of models: it validates requests as
// strictly as the real API, records them, and answers from what they contain. Tests and
// the benchmarks use it.
//
// It must not import testing, nor any of our packages.
package proxytest
