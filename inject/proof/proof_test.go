package proof

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryStore is a Store in RAM.
type memoryStore struct {
	mu     sync.Mutex
	values map[string][]byte
	err    error
}

func (s *memoryStore) Load(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], s.err
}

func (s *memoryStore) Save(_ context.Context, key string, body []byte, _ int64, _ ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = make(map[string][]byte)
	}
	s.values[key] = body
	return s.err
}

func (s *memoryStore) Each(_ context.Context, f func(string, []byte) error, _ ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, body := range s.values {
		if err := f(key, body); err != nil {
			return err
		}
	}
	return s.err
}

func open(t *testing.T, s Store, share float64, number int) *Proof {
	t.Helper()
	p := Open(s, Terms{share, number, []byte("secret")}, slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	return p
}

func report(t *testing.T, p *Proof) *Report {
	t.Helper()
	r, err := p.Report(t.Context())
	if err != nil || r == nil {
		t.Fatalf("Report = %v, %v", r, err)
	}
	return r
}

const line = "the staging server listens on port 9090"

// talk lets a conversation see or miss a block, and then say something.
func talk(p *Proof, n int, said ...string) (c Talk, withheld bool) {
	c = Talk{Owner: "user:mira", Session: fmt.Sprint("session:", n)}
	withheld = p.Withholds(context.Background(), &c, false, false)
	p.Add(Event{Talk: c, Text: "which port does staging use?", Lines: []string{line}})
	for _, s := range said {
		p.Add(Event{Talk: c, Text: s})
	}
	synctest.Wait()
	return c, withheld
}

// TestArm checks that about the share of conversations has no memory, and that a conversation keeps
// its arm over restarts and on replicas.
func TestArm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memoryStore{}
		p, replica := open(t, s, 0.3, 1000), open(t, s, 0.3, 1000)
		replica.terms.Secret = nil // of another machine
		count := 0
		for n := range 300 {
			c, withheld := talk(p, n)
			if withheld {
				count++
			}
			if again := replica.Withholds(t.Context(), &c, true, false); again != withheld {
				t.Fatalf("conversation %d: withheld %t, then %t", n, withheld, again)
			}
		}
		if count < 60 || count > 120 {
			t.Errorf("%d of 300 conversations have no memory, want about 90", count)
		}
		if r := report(t, p); r.Arms["withheld"] != count || r.Arms["shown"] != 300-count || r.Arms["missing"] != 700 {
			t.Errorf("the report has %+v", r)
		}
	})
}

func TestOff(t *testing.T) {
	p := Open(&memoryStore{}, Terms{Number: 100}, nil)
	if r, err := p.Report(t.Context()); p != nil || r != nil || err != nil {
		t.Fatalf("Open = %v, with the report %v, %v", p, r, err)
	}
	c := Talk{Session: "s"}
	p.Add(Event{Talk: c, Text: "x"})
	p.Close()
	if p.Withholds(t.Context(), &c, false, false) {
		t.Error("a block is withheld without proof mode")
	}
}

// TestLeftOut checks that no block is withheld from conversations outside the comparison, and that
// they are counted by reason.
func TestLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memoryStore{}
		p := open(t, s, 0.9, 100)
		c := func(n int) *Talk { return &Talk{Owner: "o", Session: fmt.Sprint(n)} }
		for n := range 20 {
			if p.Withholds(t.Context(), c(n), true, false) {
				t.Error("withheld from a conversation with an earlier block")
			}
			if p.Withholds(t.Context(), c(100+n), false, true) || p.Withholds(t.Context(), c(100+n), false, false) {
				t.Error("withheld from a conversation that asked for memory")
			}
		}
		later, withheld := talk(p, 0)
		for n := 1; !withheld; n++ {
			later, withheld = talk(p, n)
		}
		p.Add(Event{Talk: later, Text: "show it", Asked: true})
		synctest.Wait()
		if p.Withholds(t.Context(), &later, false, false) {
			t.Error("withheld after the person has asked for memory")
		}
		if r := report(t, p); r.Arms[leftBefore] != 20 || r.Arms[leftAsked] != 21 {
			t.Errorf("left out: %v", r.Arms)
		}
		if text := fmt.Sprintf("%s", s.values); strings.Contains(text, "staging") || strings.Contains(text, "mira") {
			t.Errorf("a trial contains text: %s", text)
		}
	})
}

// TestUnstored checks that a block is shown if its arm cannot be stored.
func TestUnstored(t *testing.T) {
	s := &memoryStore{}
	p := open(t, s, 0.9, 100)
	s.err = fmt.Errorf("disk full")
	for n := range 20 {
		if p.Withholds(t.Context(), &Talk{Session: fmt.Sprint(n)}, false, false) {
			t.Error("withheld without a stored arm")
		}
	}
}

func TestSignals(t *testing.T) {
	for _, tc := range []struct {
		name, said      string
		told, corrected bool
	}{
		{"told again", "The staging server listens on port 9090, use that.", true, false},
		{"another order", "Ok. On staging, port 9090 is where the server listens.", true, false},
		{"a question", "does the staging server listen on port 9090?", false, false},
		{"another subject", "Write a test for the parser, please.", false, false},
		{"corrected", "No, we no longer use nginx there.", false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &memoryStore{}
			p := open(t, s, 0.5, 100)
			c, _ := talk(p, 1, tc.said)
			p.Add(Event{Talk: c, Rounds: 1, Tokens: 250})
			synctest.Wait()
			var got trial
			_ = json.Unmarshal(s.values[p.key(&c)], &got)
			if got.Told != tc.told || got.Corrected != tc.corrected || got.Turns != 2 || got.Rounds != 1 || got.Tokens != 250 {
				t.Errorf("%s: %+v", tc.name, got)
			}
		})
	}
}

// TestNoLook checks that the comparison waits for the end of all its conversations, and that further
// ones do not change it.
func TestNoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memoryStore{}
		p := open(t, s, 0.5, 40)
		say := func(n int) {
			_, withheld := talk(p, n)
			if withheld {
				talk(p, n, "The staging server listens on port 9090.")
			}
		}
		for n := range 39 {
			say(n)
		}
		time.Sleep(2 * time.Hour)
		if r := report(t, p); r.Signals != nil || r.Arms["missing"] != 1 || !strings.HasPrefix(r.Says, noneSeen) {
			t.Errorf("before the end: %+v", r)
		}
		say(39)
		if r := report(t, p); r.Signals != nil || r.Arms["open"] != 1 {
			t.Errorf("before the last conversation has ended: %+v", r)
		}
		time.Sleep(2 * time.Hour)
		r := report(t, p)
		if len(r.Signals) == 0 || r.Signals[0].High >= 0 || r.Signals[0].Withheld != 1 || !strings.HasPrefix(r.Says, "a difference") {
			t.Fatalf("at the end: %+v", r)
		}
		for n := range 20 {
			if _, withheld := talk(p, 100+n); withheld {
				t.Error("withheld after the end")
			}
		}
		if again := report(t, p); again.Says != r.Says {
			t.Errorf("the result changed from %q to %q", r.Says, again.Says)
		}
	})
}

// TestCompare checks the coverage of intervals, for one person and for people as clusters.
func TestCompare(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		people, number       int
		share, shown, spread float64
	}{{1, 278, 0.5, 0.12, 0}, {1, 278, 0.5, 0.25, 0}, {40, 278, 0.5, 0.12, 0.1}, {40, 687, 0.1, 0.12, 0.1}, {5, 278, 0.5, 0.12, 0.1}} {
		covered := 0
		const runs = 1000
		for range runs {
			own := make([]float64, tc.people)
			for i := range own {
				own[i] = tc.spread * (2*random.Float64() - 1)
			}
			trials := make([]*trial, tc.number)
			for i := range trials {
				who := random.IntN(tc.people)
				one := &trial{Withheld: random.Float64() < tc.share, Person: fmt.Append(nil, who)}
				rate := tc.shown + own[who]
				if one.Withheld {
					rate = 0.25 + own[who]
				}
				one.Told = random.Float64() < rate
				trials[i] = one
			}
			s := compare("", trials, func(t *trial) bool { return t.Withheld }, func(t *trial) float64 { return one(t.Told) }, true)
			if truth := tc.shown - 0.25; s.Low <= truth && truth <= s.High {
				covered++
			}
		}
		if covered < 935 {
			t.Errorf("%+v: %d of %d intervals have the truth", tc, covered, runs)
		}
	}
}
