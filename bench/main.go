// Command bench compares the proxy, in one run, with no proxy, with a bare fasthttp relay
// that only copies, and with nginx and HAProxy if they are installed. Each target is a
// process of its own on the loopback interface, and the targets take turns within each
// round.
//
// It owns the load, the stand-in upstream and the report. It measures the binary that users
// run, so it must not link the proxy: of our packages it imports only the stand-in Graphiti
// and, to fit the numbers of the ranking, graphiti, the embedded memory and inject.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the options of a run.
type options struct {
	rounds   int
	duration time.Duration // of each flat-out measurement
	streams  int           // open at the same time
	chunks   int           // of a stream
	pace     time.Duration // between chunks
	before   string        // the binary of another version, or ""
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "role" {
		role(os.Args[2:])
		return
	}
	if len(os.Args) > 1 {
		if run, ok := map[string]func() error{
			"recall": func() error { return recall(os.Args[2:]) }, "fit": func() error { return fitCommand(os.Args[2:]) }, "prefix": prefix, "latency": latency,
			"telemetry": func() error { return telemetry(os.Args[2:]) },
			"streams":   func() error { return streams(os.Args[2:]) },
			"people":    func() error { return people(os.Args[2:]) },
			"proof":     proofs,
			"rivals":    func() error { return rivals(os.Args[2:]) },
		}[os.Args[1]]; ok {
			if err := run(); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
				os.Exit(1)
			}
			return
		}
	}
	o := options{chunks: 50, pace: 20 * time.Millisecond}
	quick := flag.Bool("quick", false, "one short round, for a rough estimate")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds; medians are shown")
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "duration of each flat-out measurement")
	flag.IntVar(&o.streams, "streams", 1000, "number of concurrent streams")
	flag.StringVar(&o.before, "before", "", "binary of another version of the proxy, to compare with")
	flag.Parse()
	if *quick {
		o.rounds, o.duration, o.streams = 1, time.Second, 200
	}
	if err := bench(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// role runs a process of the benchmark: the upstream, the relay or the collector.
func role(args []string) {
	switch args[0] {
	case "upstream":
		serveUpstream(args[1])
	case "relay":
		serveRelay(args[1], args[2])
	case "collector":
		serveCollector(args[1])
	}
}

func bench(o options) error {
	p, err := startProcesses(o.before)
	defer p.stop()
	if err != nil {
		return err
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		p.stop()
		os.Exit(1)
	}()
	r, others := newReport(o), p.watchOthers()
	for round := range o.rounds {
		for _, t := range p.targets {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, o.rounds, t.name)
			if err := measure(t, o, r); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	r.others = others.others()
	r.print(os.Stdout, p.missing)
	return nil
}

// sizes are the sizes of the requests of flatOut.
var sizes = []int{1 << 10, 64 << 10, 512 << 10}

func label(size int) string { return fmt.Sprintf("%d KiB", size>>10) }

// measure measures a target for one round.
func measure(t *target, o options, r *report) error {
	for _, size := range sizes {
		before := t.cpu()
		name := label(size)
		n, err := flatOut(t, size, o.duration)
		if err != nil {
			return fmt.Errorf("requests of %s: %w", name, err)
		}
		r.add(t, name+" rps", float64(n)/o.duration.Seconds())
		r.add(t, name+" µs", float64(t.cpu()-before)/float64(n)/1e3)
		if err := r.addBlocks(t, name); err != nil {
			return fmt.Errorf("requests of %s: %w", name, err)
		}
	}
	latencies, err := atRate(t, 1<<10, 500, o.duration)
	if err != nil {
		return err
	}
	r.add(t, "p50", quantile(latencies, .5))
	r.add(t, "p99", quantile(latencies, .99))
	if err := r.addBlocks(t, "rate"); err != nil {
		return fmt.Errorf("requests at a low rate: %w", err)
	}
	first, err := firstChunks(t, 400)
	if err != nil {
		return err
	}
	r.add(t, "first", quantile(first, .5))

	before, memory := t.cpu(), t.memory()
	most, err := manyStreams(t, o)
	if err != nil {
		return fmt.Errorf("streams: %w", err)
	}
	r.add(t, "stream µs", float64(t.cpu()-before)/float64(o.streams)/1e3)
	r.add(t, "stream KiB", float64(most-memory)/float64(o.streams)/1024)
	return r.addBlocks(t, "stream")
}
