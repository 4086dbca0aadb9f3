// Package proxytest owns a fake model provider: it validates requests as strictly as the real
// APIs, records them, and answers from their contents. Tests and the benchmarks use it. It
// never imports testing.
package proxytest
