package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"
)

// streams compares the costs of open streams, event by event. RAM is measured in fresh
// processes.
func streams(args []string) error {
	f := flag.NewFlagSet("streams", flag.ContinueOnError)
	before := f.String("before", "", "binary of another version of the proxy, to compare with")
	rounds := f.Int("rounds", 3, "rounds; medians are shown")
	open := f.Int("streams", 1000, "streams open at the same time")
	if err := f.Parse(args); err != nil {
		return err
	}
	p, self, upstream, err := startUpstream()
	defer p.stop()
	if err != nil {
		return err
	}
	same := func(int) string { return kept }
	p.targets = append(p.targets, &target{name: "direct", address: upstream, history: same})
	relay := freeAddress()
	pid, err := p.start(relay, nil, self, "role", "relay", relay, upstream)
	if err != nil {
		return err
	}
	p.targets = append(p.targets, &target{name: "bare fasthttp relay", address: relay, pid: pid, history: same})
	if err := p.references(upstream, same); err != nil {
		return err
	}
	for _, v := range []struct{ name, binary, backend string }{
		{"before: memory off", *before, "off"},
		{"graphiti-proxy, memory off", p.binary(), "off"},
		{"before: each stream a turn", *before, "embedded"},
		{"graphiti-proxy, each stream a turn", p.binary(), "embedded"},
	} {
		if v.binary == "" {
			continue
		}
		// Each stream is a turn, so that all of them are read.
		if err := p.proxy(v.name, v.binary, upstream, v.backend, func(n int) string { return "number " + strconv.Itoa(n) }); err != nil {
			return err
		}
	}
	r, others := newReport(options{rounds: *rounds, streams: *open}), p.watchOthers()
	for round := range *rounds {
		for _, t := range p.targets {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, *rounds, t.name)
			if err := measureStreams(t, r, round == 0); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	r.others = others.others()
	r.printStreams(os.Stdout, p.missing)
	return nil
}

// paces are the intervals between the events of a stream.
var paces = []time.Duration{100 * time.Millisecond, 20 * time.Millisecond}

func perEvent(pace time.Duration) string { return "event every " + pace.String() }

// measureStreams measures a target for one round. The cost of an event is the difference
// between a long stream and a short one, which cancels the costs of the start and the end.
func measureStreams(t *target, r *report, fresh bool) error {
	const short, long = 10, 40
	for _, pace := range paces {
		var cost [2]int64
		for i, chunks := range []int{long, short} {
			before, memory := t.cpu(), t.memory()
			most, err := manyStreams(t, options{streams: r.o.streams, chunks: chunks, pace: pace})
			if err != nil {
				return err
			}
			cost[i] = t.cpu() - before
			if fresh {
				r.add(t, "stream KiB", float64(most-memory)/float64(r.o.streams)/1024)
				fresh = false
			}
		}
		r.add(t, perEvent(pace), float64(cost[0]-cost[1])/float64(r.o.streams*(long-short))/1e3)
	}
	first, err := firstChunks(t, 400)
	if err != nil {
		return err
	}
	r.add(t, "first", quantile(first, .5))
	return r.addBlocks(t, "stream")
}
