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

// reference returns the target to which ratios refer: HAProxy, or the bare relay if HAProxy
// is not installed.
func (r *report) reference() *target {
	for _, t := range r.order {
		if t.name == "haproxy" {
			return t
		}
	}
	return r.order[1]
}

// printStreams writes a table of the costs of open streams.
func (r *report) printStreams(w io.Writer, missing []string) {
	direct, to := r.order[0], r.reference()
	fmt.Fprintf(w, "%d processors, medians of %d rounds; %d streams open at the same time; ratios are to %s\n\n", runtime.NumCPU(), r.o.rounds, r.o.streams, to.name)
	for _, m := range missing {
		fmt.Fprintf(w, "**%s**\n\n", m)
	}
	fmt.Fprintln(w, "| through | CPU µs per event, one in 100 ms | one in 20 ms | first chunk later | KiB per open stream |")
	fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: |")
	for _, t := range r.order[1:] {
		fmt.Fprintf(w, "| %s |", t.name)
		for _, pace := range paces {
			v := r.median(t, perEvent(pace))
			fmt.Fprintf(w, " %.1f (%.2f×) |", v, v/r.median(to, perEvent(pace)))
		}
		fmt.Fprintf(w, " %.0f µs | %.1f |\n", r.median(t, "first")-r.median(direct, "first"), r.median(t, "stream KiB"))
	}
}

// print writes a table for the docs. Ratios refer to reference, in the same run.
func (r *report) print(w io.Writer, missing []string) {
	direct, to := r.order[0], r.reference()
	fmt.Fprintf(w, "%d processors, medians of %d rounds, %s; %d streams of %d chunks open at the same time; ratios are to %s\n\n",
		runtime.NumCPU(), r.o.rounds, r.o.duration, r.o.streams, r.o.chunks, to.name)
	for _, m := range missing {
		fmt.Fprintf(w, "**%s**\n\n", m)
	}
	fmt.Fprintln(w, "| through | req/s 1 KiB | 64 KiB | 512 KiB | CPU µs per request 1 KiB | 64 KiB | 512 KiB | per stream | added p50 | added p99 | first chunk later | KiB per open stream |")
	fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, t := range r.order {
		fmt.Fprintf(w, "| %s |", t.name)
		for _, size := range sizes {
			fmt.Fprintf(w, " %.0f |", r.median(t, label(size)+" rps"))
		}
		if t == direct {
			fmt.Fprintf(w, " – | – | – | – | (%.0f µs) | (%.0f µs) | (%.0f µs) | – |\n", r.median(t, "p50"), r.median(t, "p99"), r.median(t, "first"))
			continue
		}
		for _, name := range []string{label(sizes[0]) + " µs", label(sizes[1]) + " µs", label(sizes[2]) + " µs", "stream µs"} {
			fmt.Fprintf(w, " %.0f (%.2f×) |", r.median(t, name), r.median(t, name)/r.median(to, name))
		}
		for _, name := range []string{"p50", "p99", "first"} {
			fmt.Fprintf(w, " %.0f µs |", r.median(t, name)-r.median(direct, name))
		}
		fmt.Fprintf(w, " %.1f |\n", r.median(t, "stream KiB"))
	}
}
