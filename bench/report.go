package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
)

// report gathers figures and shows their medians.
type report struct {
	o      options
	order  []*target
	values map[*target]map[string][]float64
	others float64 // processors that other programs used during the run
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

// addBlocks adds the share of a measurement's requests that got a block, in percent.
func (r *report) addBlocks(t *target, name string) error {
	share, err := t.blockShare()
	r.add(t, name+" blocks", 100*share)
	return err
}

// blocks returns the shares of requests with a block, in percent.
func (r *report) blocks(t *target, names ...string) string {
	if !t.recalls {
		return "–"
	}
	var shares []string
	for _, name := range names {
		shares = append(shares, fmt.Sprintf("%.0f", r.median(t, name+" blocks")))
	}
	return strings.Join(shares, ", ") + " %"
}

// title writes the conditions of a run.
func (r *report) title(w io.Writer, missing []string, how string) {
	fmt.Fprintf(w, "%d processors, of which other programs used %.2f; medians of %d rounds%s\n\n", runtime.NumCPU(), r.others, r.o.rounds, how)
	for _, m := range missing {
		fmt.Fprintf(w, "**%s**\n\n", m)
	}
}

// printStreams writes a table of the costs of open streams.
func (r *report) printStreams(w io.Writer, missing []string) {
	direct, to := r.order[0], r.reference()
	r.title(w, missing, fmt.Sprintf("; %d streams open at the same time", r.o.streams))
	fmt.Fprintln(w, "| through | CPU µs per event, one in 100 ms | one in 20 ms | first chunk later, µs | KiB per open stream | ratio to "+to.name+", one in 100 ms | one in 20 ms | with a block |")
	fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, t := range r.order[1:] {
		fmt.Fprintf(w, "| %s |", t.name)
		for _, pace := range paces {
			fmt.Fprintf(w, " %.1f |", r.median(t, perEvent(pace)))
		}
		fmt.Fprintf(w, " %.0f | %.1f |", r.median(t, "first")-r.median(direct, "first"), r.median(t, "stream KiB"))
		for _, pace := range paces {
			fmt.Fprintf(w, " %.2f |", r.median(t, perEvent(pace))/r.median(to, perEvent(pace)))
		}
		fmt.Fprintf(w, " %s |\n", r.blocks(t, "stream"))
	}
}

// print writes two tables for the docs: times, and then ratios to reference in the same run.
func (r *report) print(w io.Writer, missing []string) {
	r.title(w, missing, fmt.Sprintf(" of %s; %d streams of %d chunks open at the same time", r.o.duration, r.o.streams, r.o.chunks))
	r.printTimes(w)
	fmt.Fprintln(w)
	r.printRatios(w)
}

// costs are the measurements of processor time, in the order of the tables.
var costs = []string{label(sizes[0]), label(sizes[1]), label(sizes[2]), "stream"}

func (r *report) printTimes(w io.Writer) {
	direct := r.order[0]
	fmt.Fprintln(w, "| through | CPU µs per request of 1 KiB | 64 KiB | 512 KiB | per stream | added p50, µs | added p99, µs | first chunk later, µs | with a block, in the order of the first four |")
	fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	fmt.Fprintf(w, "| %s | – | – | – | – | (%.0f) | (%.0f) | (%.0f) | – |\n", direct.name, r.median(direct, "p50"), r.median(direct, "p99"), r.median(direct, "first"))
	for _, t := range r.order[1:] {
		fmt.Fprintf(w, "| %s |", t.name)
		for _, name := range costs {
			fmt.Fprintf(w, " %.0f |", r.median(t, name+" µs"))
		}
		for _, name := range []string{"p50", "p99", "first"} {
			fmt.Fprintf(w, " %.0f |", r.median(t, name)-r.median(direct, name))
		}
		fmt.Fprintf(w, " %s |\n", r.blocks(t, costs...))
	}
}

func (r *report) printRatios(w io.Writer) {
	to := r.reference()
	fmt.Fprintln(w, "| through | CPU in ratio to "+to.name+", 1 KiB | 64 KiB | 512 KiB | stream | req/s 1 KiB | 64 KiB | 512 KiB | KiB per open stream |")
	fmt.Fprintln(w, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, t := range r.order {
		fmt.Fprintf(w, "| %s |", t.name)
		for _, name := range costs {
			if t.pid == 0 {
				fmt.Fprint(w, " – |")
				continue
			}
			fmt.Fprintf(w, " %.2f |", r.median(t, name+" µs")/r.median(to, name+" µs"))
		}
		for _, size := range sizes {
			fmt.Fprintf(w, " %.0f |", r.median(t, label(size)+" rps"))
		}
		if t.pid == 0 {
			fmt.Fprintln(w, " – |")
			continue
		}
		fmt.Fprintf(w, " %.1f |\n", r.median(t, "stream KiB"))
	}
}
