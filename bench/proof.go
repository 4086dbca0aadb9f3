package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
)

// simulated is a store of trials in RAM, in which all conversations have ended.
type simulated struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (s *simulated) Load(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], nil
}

func (s *simulated) Save(_ context.Context, key string, value []byte, _ int64, _ ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
	return nil
}

func (s *simulated) Each(_ context.Context, f func(string, []byte) error, _ ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, value := range s.values {
		var v map[string]any
		if err := json.Unmarshal(value, &v); err != nil {
			return err
		}
		if v["last"] != nil {
			v["last"] = time.Now().Add(-2 * time.Hour).UTC()
			value, _ = json.Marshal(v)
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

// proofs simulates experiments of proof mode with a known effect, and reports how many intervals have
// it, and how many experiments see a difference.
func proofs() error {
	const (
		runs = 400
		line = "the staging server listens on port 9090"
		ask  = "which port does the staging server use?"
		told = "The staging server listens on port 9090."
	)
	random := rand.New(rand.NewPCG(53, 5)) // #nosec G404 -- a simulation
	fmt.Printf("| people | share withheld | told again, with | without | conversations | intervals with the truth | halves alike | see a difference |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range []struct {
		people, number       int
		share, with, without float64
		spread               float64 // of people around these rates
	}{{1, 278, 0.5, 0.12, 0.25, 0}, {1, 278, 0.5, 0.25, 0.25, 0}, {40, 278, 0.5, 0.12, 0.25, 0.1}, {40, 687, 0.1, 0.12, 0.25, 0.1}} {
		truth, alike, seen := 0, 0, 0
		for range runs {
			s := &simulated{values: make(map[string][]byte)}
			set := proof.Terms{Share: c.share, Number: c.number, Secret: []byte(fmt.Sprint(random.Uint64()))}
			own := make([]float64, c.people)
			for i := range own {
				own[i] = c.spread * (2*random.Float64() - 1)
			}
			p := proof.Open(s, set, slog.New(slog.DiscardHandler))
			for n := range c.number {
				person := random.IntN(c.people)
				of := proof.Talk{Owner: fmt.Sprint("user:", person), Session: fmt.Sprint(n)}
				rate := c.with + own[person]
				if p.Withholds(context.Background(), &of, false, false) {
					rate = c.without + own[person]
				}
				p.Add(proof.Event{Talk: of, Text: ask, Lines: []string{line}})
				if random.Float64() < rate {
					p.Add(proof.Event{Talk: of, Text: told})
				}
				if n%200 == 199 { // Close waits for the events
					p.Close()
					p = proof.Open(s, set, slog.New(slog.DiscardHandler))
				}
			}
			p.Close()
			r, err := p.Report(context.Background())
			if err != nil {
				return err
			}
			if len(r.Signals) == 0 {
				return fmt.Errorf("no result: %+v", r)
			}
			first, halves := r.Signals[0], r.Signals[len(r.Signals)-1]
			if d := c.with - c.without; first.Low <= d && d <= first.High {
				truth++
			}
			if halves.Low <= 0 && 0 <= halves.High {
				alike++
			}
			if first.High < 0 || first.Low > 0 {
				seen++
			}
		}
		of := func(n int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/runs) }
		fmt.Printf("| %d | %.0f %% | %.0f %% | %.0f %% | %d | %s | %s | %s |\n", c.people, 100*c.share, 100*c.with, 100*c.without, c.number, of(truth), of(alike), of(seen))
	}
	return nil
}
