package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// telemetry compares the costs of tracing: off, on with nothing sampled, and on with
// everything sampled, each without memory and with a repeated block.
func telemetry(args []string) error {
	f := flag.NewFlagSet("telemetry", flag.ExitOnError)
	rounds := f.Int("rounds", 5, "rounds; medians are shown")
	duration := f.Duration("duration", 2*time.Second, "of each flat-out measurement")
	before := f.String("before", "", "another binary of the proxy, to compare with")
	if err := f.Parse(args); err != nil {
		return err
	}
	p, self, upstream, err := startUpstream()
	defer p.stop()
	if err != nil {
		return err
	}
	collector := freeAddress()
	if _, err := p.start(collector, nil, self, "role", "collector", collector); err != nil {
		return err
	}
	on := "GRAPHITI_PROXY_OTEL_ENDPOINT=http://" + collector
	same := func(int) string { return kept }
	named := map[string]string{"off": "memory off, ", "embedded": "block kept, "}
	for _, backend := range []string{"off", "embedded"} {
		for _, v := range []struct {
			name, binary string
			env          []string
		}{
			{"the other binary", *before, nil},
			{"telemetry off", p.binary(), nil},
			{"on, nothing sampled", p.binary(), []string{on, "GRAPHITI_PROXY_OTEL_SAMPLE=0"}},
			{"on, everything sampled", p.binary(), []string{on}},
		} {
			if v.binary == "" {
				continue
			}
			if err := p.proxy(named[backend]+v.name, v.binary, upstream, backend, same, v.env...); err != nil {
				return err
			}
		}
	}
	took, rate := make(map[*target][]float64), make(map[*target][]float64)
	for round := range *rounds {
		for _, t := range p.targets {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, *rounds, t.name)
			began := t.cpu()
			n, err := flatOut(t, 1<<10, *duration)
			if err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			if _, err := t.blockShare(); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			took[t] = append(took[t], float64(t.cpu()-began)/float64(n)/1e3)
			rate[t] = append(rate[t], float64(n)/duration.Seconds())
		}
	}
	fmt.Printf("medians of %d rounds of %s, requests of 1 KiB\n\n", *rounds, *duration)
	fmt.Println("| proxy | req/s | CPU s per 1,000 req | to telemetry off |")
	fmt.Println("| --- | ---: | ---: | ---: |")
	half := len(p.targets) / 2
	for i, t := range p.targets {
		off := p.targets[i/half*half+half-3]
		fmt.Printf("| %s | %.0f | %.4f | %.2f× |\n", t.name, quantile(rate[t], .5), quantile(took[t], .5)/1e3, quantile(took[t], .5)/quantile(took[off], .5))
	}
	return nil
}

// serveCollector accepts and discards all data.
func serveCollector(address string) {
	s := &http.Server{Addr: address, ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})}
	fmt.Fprintln(os.Stderr, s.ListenAndServe())
}
