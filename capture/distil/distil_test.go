package distil

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a Store with batches, which are due at once or when they were postponed to.
type shelf struct {
	mu        sync.Mutex // protects the fields below
	batches   []*graphiti.Batch
	again     map[*graphiti.Batch]time.Time // when a postponed batch is due
	facts     []graphiti.Distilled
	postponed []time.Duration
	spent     graphiti.Spent
	by        map[string]graphiti.Spent // the same by owner
}

func (s *shelf) Undistilled(context.Context, time.Duration, int) (*graphiti.Batch, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next time.Time
	for _, b := range s.batches {
		if !s.again[b].After(time.Now()) {
			return b, time.Time{}, nil
		}
		if next.IsZero() || s.again[b].Before(next) {
			next = s.again[b]
		}
	}
	return nil, next, nil
}

func (s *shelf) KeepFacts(_ context.Context, b *graphiti.Batch, facts []graphiti.Distilled) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = slices.DeleteFunc(s.batches, func(other *graphiti.Batch) bool { return other == b })
	s.facts = append(s.facts, facts...)
	return len(facts), nil
}

func (s *shelf) Postpone(_ context.Context, b *graphiti.Batch, until time.Time, failed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failed {
		b.Tries++
	}
	if s.again == nil {
		s.again = make(map[*graphiti.Batch]time.Time)
	}
	s.again[b], s.postponed = until, append(s.postponed, time.Until(until))
	return nil
}

// Distilled implements Costs, for one day.
func (s *shelf) Distilled(owner string, more graphiti.Spent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent.Add(more)
	if s.by == nil {
		s.by = make(map[string]graphiti.Spent)
	}
	for of := range map[string]bool{owner: true, graphiti.TenantOf(owner): true} {
		all := s.by[of]
		all.Add(more)
		s.by[of] = all
	}
}

// DistilledToday implements Costs.
func (s *shelf) DistilledToday(_ context.Context, owner string) (graphiti.Spent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if owner == "" {
		return s.spent, nil
	}
	return s.by[owner], nil
}

// script is a Model with prepared answers; without one it waits for the end of the call.
type script chan func() (string, int, error)

func (s script) Ask(ctx context.Context, _ *graphiti.Batch, _, _ string) (string, int, error) {
	select {
	case f := <-s:
		return f()
	case <-ctx.Done():
		return "", 0, ctx.Err()
	}
}

func answers(text string, tokens int) func() (string, int, error) {
	return func() (string, int, error) { return text, tokens, nil }
}

const lamp = `{"facts": [{"text": "The lamp is on", "sources": ["M1"]}, {"text": "The lamp is on", "sources": ["M9"]}]}`

func start(t *testing.T, st *shelf, m Model, s Pace) *Distiller {
	t.Helper()
	d := Start(st, st, m, "http://model", s, slog.New(slog.DiscardHandler))
	t.Cleanup(d.Close)
	return d
}

func TestDistiller_KeepsFactsAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, m := &shelf{batches: []*graphiti.Batch{batchOf("user: the lamp is on")}}, make(script, 1)
		m <- answers(lamp, 5000)
		d := start(t, st, m, Pace{After: time.Minute, DailyTokens: 10000})
		synctest.Wait()
		if len(st.facts) != 1 || st.spent != (graphiti.Spent{Calls: 1, Tokens: 5000, Facts: 1, Refused: 1}) {
			t.Errorf("got facts %+v and %+v; want one fact, one refused, 5000 tokens", st.facts, st.spent)
		}
		if s := d.Status(context.Background()); s.Problem != "" || s.Endpoint != "http://model" || s.Today.Tokens != 5000 {
			t.Errorf("Status = %+v, want no problem", s)
		}
	})
}

// TestDistiller_Faults: a batch is sent again after ever longer times, and the process stays
// as it is.
func TestDistiller_Faults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, m := &shelf{batches: []*graphiti.Batch{batchOf("user: the lamp is on")}}, make(script, 9)
		m <- answers("garbage", 0)
		m <- func() (string, int, error) { return "", 0, errors.New("429") }
		m <- func() (string, int, error) { panic("a bug") }
		d := start(t, st, m, Pace{After: time.Minute, DailyTokens: 1e6})
		synctest.Wait()
		if s := d.Status(context.Background()); s.Problem != errForm.Error() {
			t.Errorf("Problem = %q, want %q", s.Problem, errForm)
		}
		time.Sleep(time.Minute + 4*time.Minute + time.Second) // of the bubble
		synctest.Wait()
		time.Sleep(16*time.Minute + callTimeout + 2*time.Second)
		synctest.Wait()
		want := []time.Duration{time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute}
		if len(st.postponed) != len(want) || st.spent.Failed != len(want) {
			t.Fatalf("postponed %v, %d failed; want %v", st.postponed, st.spent.Failed, want)
		}
		for i := range want {
			if st.postponed[i] != want[i] {
				t.Errorf("attempt %d: postponed by %v, want %v", i+1, st.postponed[i], want[i])
			}
		}
		m <- answers(lamp, 0)
		time.Sleep(65 * time.Minute)
		synctest.Wait()
		if s := d.Status(context.Background()); len(st.facts) != 1 || s.Problem != "" {
			t.Errorf("got facts %v and problem %q; want the fact", st.facts, s.Problem)
		}
		if st.spent.Tokens < 5*len(instructions)/(charsPerToken+1) {
			t.Errorf("got %d tokens of a server that reports none, want an estimate", st.spent.Tokens)
		}
	})
}

func TestDistiller_StaysWithinItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, m := &shelf{batches: []*graphiti.Batch{batchOf("user: one"), batchOf("user: two")}}, make(script, 2)
		m <- answers(`{"facts":[]}`, 9000)
		d := start(t, st, m, Pace{After: time.Minute, DailyTokens: 10000})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := d.Status(context.Background()); st.spent.Calls != 1 || s.Problem != errBudget.Error() {
			t.Errorf("got %d calls and problem %q; want one call and %q", st.spent.Calls, s.Problem, errBudget)
		}
		m <- answers(`{"facts":[]}`, 0)
		d.Set(Pace{After: time.Minute, DailyTokens: 20000})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if st.spent.Calls != 2 {
			t.Errorf("got %d calls with a larger budget, want 2", st.spent.Calls)
		}
	})
}

// TestDistiller_Quota checks that a person or tenant with no tokens left waits until the next UTC
// day, and that another person's messages are distilled meanwhile.
func TestDistiller_Quota(t *testing.T) {
	for name, tc := range map[string]struct {
		pace   Pace
		second string // owner of the second batch
	}{
		"of a person": {Pace{PersonTokens: 10000}, "sha256:1|user:ann"},
		"of a tenant": {Pace{TenantTokens: 10000}, "sha256:1|user:bob"},
	} {
		t.Run(name, func(t *testing.T) { testQuota(t, tc.pace, "sha256:1|user:ann", tc.second, "sha256:2|user:ann") })
	}
}

func testQuota(t *testing.T, pace Pace, owners ...string) {
	synctest.Test(t, func(t *testing.T) {
		st, m := &shelf{}, make(script, 3)
		for _, owner := range owners {
			b := batchOf("user: the lamp is on")
			b.Owner = owner
			st.batches = append(st.batches, b)
			m <- answers(`{"facts":[]}`, 9000)
		}
		pace.After, pace.DailyTokens = time.Minute, 1e6
		d := start(t, st, m, pace)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if st.by["sha256:1"].Calls != 1 || st.by["sha256:2"].Calls != 1 || len(st.batches) != 1 {
			t.Fatalf("got %+v; want one call for each tenant", st.by)
		}
		midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		if got := st.again[st.batches[0]]; !got.Equal(midnight) || st.batches[0].Tries != 0 {
			t.Errorf("the next attempt is at %s, after %d failed ones; want %s, 0", got, st.batches[0].Tries, midnight)
		}
		if s := d.Status(context.Background()); s.Problem != "" {
			t.Errorf("Problem = %q after another person's success, want none", s.Problem)
		}
	})
}

func TestDistiller_Pause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, m := &shelf{batches: []*graphiti.Batch{batchOf("user: the lamp is on")}}, make(script, 1)
		m <- answers(lamp, 0)
		d := start(t, st, m, Pace{Paused: true, DailyTokens: 1e6})
		d.Wake()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if st.spent.Calls != 0 {
			t.Errorf("got %d calls while paused, want 0", st.spent.Calls)
		}
		d.Set(Pace{DailyTokens: 1e6})
		time.Sleep(2 * pause)
		synctest.Wait()
		if len(st.facts) != 1 {
			t.Errorf("got facts %v after the pause, want one", st.facts)
		}
	})
}

// TestDistiller_CloseEndsACall: its batch is not postponed, since it has not failed.
func TestDistiller_CloseEndsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &shelf{batches: []*graphiti.Batch{batchOf("user: x")}}
		d := start(t, st, make(script), Pace{DailyTokens: 1e6})
		synctest.Wait()
		d.Close()
		if st.spent.Calls != 0 || len(st.batches) != 1 {
			t.Errorf("got %+v with %d batches, want the batch left as it was", st.spent, len(st.batches))
		}
	})
}
