package cache

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
)

// BenchmarkKeepInPostgres measures the storing of a decision of 3 KB, and its slowest 5 %.
func BenchmarkKeepInPostgres(b *testing.B) {
	s := share(b, postgrestest.Start(b, "fsync=on").Database(b))
	block := strings.Repeat("block ", 500)
	var all []time.Duration
	for n := 0; b.Loop(); n++ {
		begin := time.Now()
		keep(b, s, n, s.made(block, 3), "g", "h")
		all = append(all, time.Since(begin))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "keep-p50-ms")
	b.ReportMetric(float64(all[len(all)*95/100].Microseconds())/1000, "keep-p95-ms")
}
