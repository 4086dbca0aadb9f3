package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a ledger in memory.
type shelf struct {
	mu       sync.Mutex // guards the fields below
	items    []Item
	sent     map[int64]bool
	verified []int64
	ids      map[string]string // of messages seen while their turn was on the shelf
}

func (s *shelf) Groups(found func(string, bool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.items {
		if !s.sent[it.Seq] {
			found(it.Group, true)
		}
	}
	return nil
}

func (s *shelf) InDoubt(found func(Item)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.items {
		if s.sent[it.Seq] {
			found(it)
		}
	}
	return nil
}

func (s *shelf) Next(_ context.Context, group string, n int) (list []Item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.items {
		if it.Group == group && !s.sent[it.Seq] && len(list) < n {
			list = append(list, it)
		}
	}
	return list, nil
}

func (s *shelf) mark(items []Item, sent bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		s.sent[it.Seq] = sent
	}
	return nil
}

func (s *shelf) MarkSent(items []Item) error { return s.mark(items, true) }
func (s *shelf) Requeue(items []Item, _ string) error {
	s.mu.Lock()
	for _, it := range items {
		i := slices.IndexFunc(s.items, func(o Item) bool { return o.Seq == it.Seq })
		s.items[i].Messages = it.unseen()
	}
	s.mu.Unlock()
	return s.mark(items, false)
}

func (s *shelf) MarkDelivered(items []Item, verified bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		s.items = slices.DeleteFunc(s.items, func(o Item) bool { return o.Seq == it.Seq })
		if verified {
			s.verified = append(s.verified, it.Seq)
		}
	}
	return nil
}

func (s *shelf) MarkDead(Item, string) error { return errors.New("nothing is to die") }

// see stores the ids of messages whose turns are still on the shelf.
func (s *shelf) see(group string, episodes []graphiti.Row) {
	ids := make(map[string]string)
	for i := range episodes {
		ids[episodes[i].Name] = episodes[i].Key
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.items {
		for _, m := range it.Messages {
			if id := ids[m.Name]; it.Group == group && id != "" {
				s.ids[m.Name] = id
			}
		}
	}
}

func (s *shelf) seen() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.verified)
}

// serial is a memory with one worker, which takes a second for each message.
type serial struct {
	mu      sync.Mutex // guards the fields below
	queue   []queued
	kept    map[string][]string
	down    bool
	dead    bool  // the worker has died, and accepted messages are lost
	refuses bool  // connections are refused
	healthy int   // calls of Health
	calls   []int // messages of each call
}

func (s *serial) work() {
	for len(s.queue) > 0 && !s.queue[0].at.After(time.Now()) {
		s.kept[s.queue[0].group] = append(s.kept[s.queue[0].group], s.queue[0].name)
		s.queue = s.queue[1:]
	}
}

var errRefused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

func (s *serial) set(dead, refuses bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead, s.refuses = dead, refuses
}

func (s *serial) Write(_ context.Context, group string, messages []graphiti.Row) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	switch {
	case s.refuses:
		return errRefused
	case s.down:
		return &graphiti.StatusError{Code: 503}
	case s.dead:
		return nil
	}
	s.calls = append(s.calls, len(messages))
	at := time.Now()
	if n := len(s.queue); n > 0 {
		at = s.queue[n-1].at
	}
	for _, m := range messages {
		at = at.Add(time.Second)
		s.queue = append(s.queue, queued{group: group, name: m.Name, at: at})
	}
	return nil
}

func (s *serial) Episodes(_ context.Context, group string, _ int) (list []graphiti.Row, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	if s.refuses {
		return nil, errRefused
	}
	for _, name := range s.kept[group] {
		list = append(list, graphiti.Row{Name: name, Key: "id of " + name})
	}
	return list, nil
}

func (s *serial) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	return nil, nil
}

func (s *serial) Forget(_ context.Context, group string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	delete(s.kept, group)
	return nil
}

func (s *serial) ForgetEpisodes(context.Context, string, func(*graphiti.Row) bool) ([]string, error) {
	return nil, nil
}

func (s *serial) Health(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.healthy++; s.down || s.refuses {
		return errors.New("down")
	}
	return nil
}

func (s *serial) Clock() time.Time { return time.Time{} }

func (s *serial) names(group string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	return slices.Clone(s.kept[group])
}

// looped runs f in a bubble with a loop over a ledger of turns for each of the groups a and
// b.
func looped(t *testing.T, turns int, f func(t *testing.T, l *Loop, s *shelf, m *serial)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, m := &shelf{sent: make(map[int64]bool), ids: make(map[string]string)}, &serial{kept: make(map[string][]string)}
		for i := range 2 * turns {
			s.items = append(s.items, item(int64(i+1), string(rune('a'+i%2)), time.Now()))
		}
		f(t, New(Options{
			Ledger: s, Memory: m, Verify: true, Timing: DefaultTiming(4, 5*time.Minute), Timeout: 10 * time.Second,
			OpenFor: OpenFor, OnDelivered: func(Delivery) {}, OnStored: func(string) {}, OnSeen: s.see, Log: slog.New(slog.DiscardHandler),
		}), s, m)
	})
}

// begin starts a loop and returns a function that stops it.
func begin(t *testing.T, l *Loop) (end func()) {
	t.Helper()
	stop := make(chan struct{})
	if err := l.Start(t.Context(), stop, Known{Instance: "test"}); err != nil {
		t.Fatal(err)
	}
	return func() {
		close(stop)
		l.Wait()
	}
}

// TestTakeover checks that the next loop polls for turns that an earlier one marked as
// sent, and sends only the lost ones again.
func TestTakeover(t *testing.T) {
	looped(t, 5, func(t *testing.T, l *Loop, s *shelf, m *serial) {
		end := begin(t, l)
		time.Sleep(3500 * time.Millisecond) // one turn and a part of the second are stored
		end()
		if len(s.seen()) == 10 || !s.sent[10] {
			t.Fatalf("seen %v, sent %v", s.seen(), s.sent)
		}
		m.mu.Lock()
		m.work()
		m.queue = m.queue[:4] // the memory loses the rest
		m.mu.Unlock()
		end = begin(t, l)
		defer end()
		time.Sleep(10 * time.Minute)
		if n := len(s.seen()); n != 10 {
			t.Fatalf("%d turns are there", n)
		}
		for _, g := range []string{"a", "b"} {
			names := m.names(g)
			slices.Sort(names)
			if len(names) != 10 || len(slices.Compact(names)) != 10 {
				t.Errorf("%s holds %q", g, names)
			}
		}
		if left := m.names(probeGroup("test")); len(left) != 0 {
			t.Errorf("a barrier is left: %q", left)
		}
	})
}

// TestPausedGroup checks that a paused group receives nothing and does not count as silent
// while other groups continue, and that the loop does not wait for turns dropped meanwhile.
func TestPausedGroup(t *testing.T) {
	looped(t, 3, func(t *testing.T, l *Loop, s *shelf, m *serial) {
		if err := l.Pause(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		end := begin(t, l)
		defer end()
		time.Sleep(time.Hour)
		if got := len(m.names("a")); got != 0 || len(s.seen()) != 3 {
			t.Fatalf("%d messages in a, seen %v", got, s.seen())
		}
		l.Resume("a")
		time.Sleep(100 * time.Millisecond)
		if err := l.Pause(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if l.Status().InFlight != 3 {
			t.Fatalf("got %+v, want InFlight 3", l.Status())
		}
		l.Discard("a", func(it *Item) bool { return it.Seq != 5 })
		l.Resume("a")
		time.Sleep(time.Minute)
		if got := s.seen(); len(got) != 4 || got[3] != 5 || l.Status().InFlight != 0 || l.Status().Stalled != (time.Time{}) {
			t.Errorf("got %v, %+v, want four seen, the last of them 5, InFlight 0 and no stall", got, l.Status())
		}
	})
}

// TestWithheldGroups checks that withheld groups wait until Withhold is called without
// them.
func TestWithheldGroups(t *testing.T) {
	looped(t, 3, func(t *testing.T, l *Loop, s *shelf, _ *serial) {
		l.Withhold([]string{"a", "b"})
		end := begin(t, l)
		defer end()
		time.Sleep(time.Hour)
		if got := s.seen(); len(got) != 0 {
			t.Errorf("got %v, want none", got)
		}
		l.Withhold(nil)
		time.Sleep(time.Minute)
		if got := s.seen(); len(got) != 6 {
			t.Errorf("got %v, want 6 of them", got)
		}
	})
}

// TestIds checks that OnSeen reports the ids of all messages before their turns leave the
// ledger.
func TestIds(t *testing.T) {
	looped(t, 3, func(t *testing.T, l *Loop, s *shelf, m *serial) {
		end := begin(t, l)
		time.Sleep(time.Minute)
		end()
		for _, name := range append(m.names("a"), m.names("b")...) {
			if want := "id of " + name; s.ids[name] != want {
				t.Errorf("the id of %s is %q, want %q", name, s.ids[name], want)
			}
		}
		if len(s.ids) != 12 {
			t.Errorf("%d ids are known, want 12", len(s.ids))
		}
	})
}

// TestRestartEndsStall checks that a visible restart of the memory, or an operator's retry,
// ends a stall within seconds instead of after the pause between tests.
func TestRestartEndsStall(t *testing.T) {
	for name, seen := range map[string]bool{"refused connections": true, "queue retry": false} {
		t.Run(name, func(t *testing.T) {
			looped(t, 2, func(t *testing.T, l *Loop, s *shelf, m *serial) {
				m.set(true, false)
				end := begin(t, l)
				defer end()
				time.Sleep(20 * time.Minute)
				if got := l.Status(); got.Stalled.IsZero() {
					t.Fatalf("got %+v, want a stall", got)
				}
				for time.Until(l.Status().NextTest) < 45*time.Second {
					time.Sleep(time.Second)
				}
				m.set(false, seen)
				if seen {
					time.Sleep(12 * time.Second)
					m.set(false, false)
				} else {
					l.Test()
				}
				time.Sleep(20 * time.Second)
				if got := l.Status(); !got.Stalled.IsZero() || !got.NextTest.IsZero() {
					t.Errorf("20 s later: stalled since %v, next test at %v, want neither", got.Stalled, got.NextTest)
				}
				time.Sleep(time.Minute)
				if got := s.seen(); len(got) != 4 {
					t.Errorf("got %v delivered, want 4 turns", got)
				}
			})
		})
	}
}

// TestBarrier checks that Barrier returns once the memory has stored all accepted messages,
// removes its barrier, returns at once if nothing was sent since, and ends with its
// context.
func TestBarrier(t *testing.T) {
	looped(t, 5, func(t *testing.T, l *Loop, s *shelf, m *serial) {
		end := begin(t, l)
		defer end()
		time.Sleep(time.Second)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if waited, err := l.Barrier(t.Context(), "a"); !waited || err != nil {
					t.Errorf("waited: %v, %v, want true and no error", waited, err)
				}
			})
		}
		both.Wait()
		if len(m.names("a")) != 10 || len(m.names("b")) != 10 || len(m.names(probeGroup("test"))) != 0 {
			t.Errorf("got %q, %q, %q, want ten, ten and none", m.names("a"), m.names("b"), m.names(probeGroup("test")))
		}
		if waited, err := l.Barrier(t.Context(), "a"); waited || err != nil {
			t.Error("nothing was sent since", waited, err)
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.items = append(s.items, item(99, "a", time.Now()))
		s.mu.Unlock()
		l.Wake("a", true)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Barrier(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestBreakerAsksForHealth checks that the loop makes a health call every ten seconds or so
// while the memory is down, and continues when it is up.
func TestBreakerAsksForHealth(t *testing.T) {
	looped(t, 5, func(t *testing.T, l *Loop, s *shelf, m *serial) {
		m.down = true
		end := begin(t, l)
		defer end()
		time.Sleep(10 * time.Minute)
		if st := l.Status(); st.Breaker == "closed" || st.Failing.IsZero() || !st.Stalled.IsZero() {
			t.Errorf("got %+v, want Breaker not \"closed\", Failing not zero, Stalled zero", st)
		}
		m.mu.Lock()
		if m.healthy < 50 || m.healthy > 61 {
			t.Errorf("asked %d times", m.healthy)
		}
		m.down = false
		m.mu.Unlock()
		time.Sleep(time.Minute)
		if st := l.Status(); len(s.seen()) != 10 || st.Breaker != "closed" || !st.Failing.IsZero() {
			t.Errorf("got %v, %+v, want 10 seen, Breaker \"closed\", Failing zero", s.seen(), st)
		}
	})
}

// TestManyGroups checks that the worker of the memory stays busy when the turns are spread
// over many groups.
func TestManyGroups(t *testing.T) {
	looped(t, 0, func(t *testing.T, l *Loop, s *shelf, m *serial) {
		for i := range 300 {
			s.items = append(s.items, item(int64(i+1), fmt.Sprint("g", i%100), time.Now()))
		}
		end := begin(t, l)
		defer end()
		begun := time.Now()
		for len(s.seen()) < 300 {
			time.Sleep(time.Second)
		}
		// The worker needs 600 s without a pause.
		if took := time.Since(begun); took > 631*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestACallIsBoundedInBytes checks that long turns are split over several calls, and that a
// turn above the limit has a call of its own.
func TestACallIsBoundedInBytes(t *testing.T) {
	looped(t, 0, func(t *testing.T, l *Loop, s *shelf, m *serial) {
		for i, length := range []int{20 << 10, 20 << 10, 20 << 10, 200 << 10, 10} {
			it := item(int64(i+1), "a", time.Now())
			it.Messages = it.Messages[:1]
			it.Messages[0].Text = strings.Repeat("x", length)
			s.items = append(s.items, it)
		}
		end := begin(t, l)
		defer end()
		time.Sleep(time.Minute)
		if got := s.seen(); len(got) != 5 {
			t.Errorf("the turns %v were delivered, want all five", got)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if want := []int{2, 1, 1, 1}; !slices.Equal(m.calls, want) {
			t.Errorf("calls of %v messages, want %v", m.calls, want)
		}
	})
}
