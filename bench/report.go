package main

import (
	"fmt"
	"io"
	"runtime"
)

// report gathers figures and shows their medians.
type report struct {
	o      options
	order  []*target
	values map[*target]map[string][]float64
}

func newReport(o options) *report {
	return &report{o: o, values: make(map[*target]map[string][]float64)}
}

func (r *report) add(t *target, name string, v float64) {
	if r.values[t] == nil {
		r.values[t] = make(map[string][]float64)
		r.order = append(r.order, t)
	}
	r.values[t][name] = append(r.values[t][name], v)
}

func (r *report) median(t *target, name string) float64 { return quantile(r.values[t][name], .5) }

// print writes a table that can stand in the README. Ratios are to the bare
// relay, of the same run.
func (r *report) print(w io.Writer) {
	direct, relay := r.order[0], r.order[1]
	fmt.Fprintf(w, "%d processors, medians of %d rounds, %s; %d streams of %d chunks open at the same time\n\n",
		runtime.NumCPU(), r.o.rounds, r.o.duration, r.o.streams, r.o.chunks)
	fmt.Fprintln(w, "| through | req/s 1 KiB | req/s 64 KiB | CPU s per 1,000 req 1 KiB | 64 KiB | per 1,000 streams | added p50 | added p99 | first chunk later | KiB per open stream |")
	fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, t := range r.order {
		fmt.Fprintf(w, "| %s | %.0f | %.0f |", t.name, r.median(t, "1 KiB rps"), r.median(t, "64 KiB rps"))
		if t == direct {
			fmt.Fprintf(w, " – | – | – | (%.0f µs) | (%.0f µs) | (%.0f µs) | – |\n", r.median(t, "p50"), r.median(t, "p99"), r.median(t, "first"))
			continue
		}
		for _, name := range []string{"1 KiB µs", "64 KiB µs", "stream µs"} {
			fmt.Fprintf(w, " %.3f (%.2f×) |", r.median(t, name)/1e3, r.median(t, name)/r.median(relay, name))
		}
		for _, name := range []string{"p50", "p99", "first"} {
			fmt.Fprintf(w, " %.0f µs |", r.median(t, name)-r.median(direct, name))
		}
		fmt.Fprintf(w, " %.1f |\n", r.median(t, "stream KiB"))
	}
}
