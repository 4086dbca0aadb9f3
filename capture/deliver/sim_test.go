package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a ledger in RAM.
type shelf struct {
	mu        sync.Mutex // protects the fields below
	rows      []*shelved
	withdrawn []ledger.Withdrawn
	sent      int64
	fault     func(n int) int // draws one of n faults of a call, or 0
}

var errShelf = errors.New("the disk is full")

// read fails a call that reads.
func (l *shelf) read() error {
	if l.fault(1) > 0 {
		return errShelf
	}
	return nil
}

// write runs f, unless the write fails. It may fail after its commit.
func (l *shelf) write(f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fault := l.fault(2)
	if fault != 1 {
		f()
	}
	if fault > 0 {
		return errShelf
	}
	return nil
}

type shelved struct {
	ledger.Copy
	state    string
	verified bool
	reason   string
	messages []graphiti.Row
}

func (l *shelf) add(group string, said time.Time) {
	n := int64(len(l.rows) + 1)
	said = said.Add(time.Duration(n) * time.Millisecond)
	r := &shelved{Copy: ledger.Copy{Group: group, Turn: fmt.Sprint(n), Seq: n}, state: "pending"}
	for _, role := range []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant} {
		r.messages = append(r.messages, graphiti.Row{Name: fmt.Sprint(n, ".", role), Role: role, Said: said, Text: fmt.Sprint(n)})
	}
	l.rows = append(l.rows, r)
}

func (l *shelf) row(c *ledger.Copy) *shelved { return l.rows[c.Seq-1] }

func (l *shelf) Waiting(context.Context) (groups []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(); err != nil {
		return nil, err
	}
	for _, r := range l.rows {
		if r.state == "pending" && !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	return groups, nil
}

func (l *shelf) Next(_ context.Context, group string, n int) (list []ledger.Copy, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(); err != nil {
		return nil, err
	}
	for _, r := range l.rows {
		if r.state == "pending" && (group == "" || r.Group == group) && len(list) < n {
			list = append(list, r.Copy)
		}
	}
	return list, nil
}

func (l *shelf) Sent(context.Context) (list []ledger.Copy, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(); err != nil {
		return nil, err
	}
	for _, r := range l.rows {
		if r.state == "sent" {
			list = append(list, r.Copy)
		}
	}
	slices.SortFunc(list, func(a, b ledger.Copy) int { return int(a.Sent - b.Sent) })
	return list, nil
}

// change changes a copy that is not settled.
func (l *shelf) change(c *ledger.Copy, state, reason string, verified bool) error {
	return l.write(func() {
		for _, one := range append([]ledger.Copy{*c}, c.Joined...) {
			if r := l.row(&one); r.state == "pending" || r.state == "sent" {
				r.state, r.Sends, r.Losses, r.reason, r.verified = state, c.Sends, c.Losses, reason, verified
			}
		}
	})
}

func (l *shelf) MarkSent(c *ledger.Copy) (ok bool, err error) {
	err = l.write(func() {
		all := append([]ledger.Copy{*c}, c.Joined...)
		if ok = !slices.ContainsFunc(all, func(c ledger.Copy) bool { s := l.row(&c).state; return s != "pending" && s != "sent" }); !ok {
			return
		}
		l.sent = max(l.sent+1, time.Now().UnixMicro())
		for i := range all {
			r := l.row(&all[i])
			r.state, r.Sends, r.Sent = "sent", r.Sends+1, l.sent
		}
		c.Sent, c.Sends = l.sent, c.Sends+1
	})
	return ok && err == nil, err
}

func (l *shelf) Requeue(c *ledger.Copy, reason string) error {
	return l.change(c, "pending", reason, false)
}
func (l *shelf) MarkDead(c *ledger.Copy, reason string) error {
	return l.change(c, "dead", reason, false)
}
func (l *shelf) MarkDelivered(c *ledger.Copy, verified bool) error {
	return l.change(c, "delivered", "", verified)
}

func (l *shelf) Withdrawn(_ context.Context, group string) (list []ledger.Withdrawn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(); err != nil {
		return nil, err
	}
	for _, w := range l.withdrawn {
		if group == "" || w.Group == group {
			list = append(list, w)
		}
	}
	return list, nil
}

func (l *shelf) Settle(list []ledger.Withdrawn) error {
	return l.write(func() {
		l.withdrawn = slices.DeleteFunc(l.withdrawn, func(w ledger.Withdrawn) bool {
			return slices.ContainsFunc(list, func(o ledger.Withdrawn) bool { return o.ID == w.ID })
		})
	})
}

// forget forgets a message of a turn, with its turn.
func (l *shelf) forget(c *ledger.Copy) {
	r := l.row(c)
	for i := range r.messages {
		w := ledger.Withdrawn{ID: int64(len(l.rows) + len(l.withdrawn) + 1), Group: c.Group, Message: graphiti.MessageID(r.messages[i].Name), At: time.Now()}
		if r.state == "sent" || r.Sends > 0 {
			w.Sent = r.Sent
		}
		l.withdrawn = append(l.withdrawn, w)
	}
	r.state, r.messages = "forgotten", nil
}

// Messages joins each second turn with the next ones of its group.
func (l *shelf) Messages(_ context.Context, c *ledger.Copy) ([]graphiti.Row, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.Clone(l.row(c).messages)
	for _, r := range l.rows[c.Seq:min(int(c.Seq+3), len(l.rows))] {
		if c.Sends == 0 && c.Seq%2 == 0 && r.Group == c.Group && r.state == "pending" && r.Sends == 0 {
			c.Joined, list = append(c.Joined, r.Copy), append(list, r.messages...)
		}
	}
	return list, l.read()
}

func (l *shelf) Again(string, []string) error { panic("no episode has two turns") }

func (l *shelf) Has(_ context.Context, _ string, names []string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.rows, func(r *shelved) bool {
		return slices.ContainsFunc(r.messages, func(m graphiti.Row) bool { return slices.Contains(names, m.Name) })
	}), l.read()
}

// sim is a Graphiti with all known faults, in the time of a bubble.
type sim struct {
	t      *testing.T
	rand   *rand.Rand
	mu     sync.Mutex // guards rand and faults
	ledger *shelf
	apart  bool
	takes  time.Duration
	poison map[string]bool
	faults int       // number of faults left
	back   time.Time // until then it is out of reach

	queues  map[string][]accepted // by worker
	crashed time.Time             // of the only worker, until a restart
	kept    map[string][]accepted // by group
	late    []accepted            // messages that arrive after their call failed
}

// accepted is an accepted message.
type accepted struct {
	group string
	graphiti.Row
	at time.Time // when the worker has stored it, or when it arrives
}

func (s *sim) workerOf(group string) string {
	if s.apart {
		return group
	}
	return ""
}

// work lets the workers catch up with the current time.
func (s *sim) work() {
	now := time.Now()
	for len(s.late) > 0 && !s.late[0].at.After(now) {
		m := s.late[0]
		s.late = s.late[1:]
		s.accept(m)
	}
	for worker, queue := range s.queues {
		for len(queue) > 0 && s.crashed.IsZero() && !queue[0].at.After(now) {
			m := queue[0]
			queue = queue[1:]
			switch {
			case !s.poison[m.Text] || m.Role != graphiti.RoleUser:
				s.kept[m.group] = append(s.kept[m.group], m)
			case !s.apart:
				s.crashed = m.at
			}
		}
		s.queues[worker] = queue
	}
	if !s.crashed.IsZero() && now.Sub(s.crashed) > 20*time.Minute {
		s.restart()
	}
}

func (s *sim) accept(m accepted) {
	w := s.workerOf(m.group)
	m.at = time.Now()
	if q := s.queues[w]; len(q) > 0 && q[len(q)-1].at.After(m.at) {
		m.at = q[len(q)-1].at
	}
	m.at = m.at.Add(s.takes)
	s.queues[w] = append(s.queues[w], m)
}

// restart drops the messages queued in the memory.
func (s *sim) restart() { s.queues, s.crashed = make(map[string][]accepted), time.Time{} }

// fault draws one of n faults, or 0 for none.
func (s *sim) fault(n int) int { return s.one(&s.faults, n, 4*n) }

// one draws one of n faults out of some more numbers, as long as faults are left.
func (s *sim) one(left *int, n, of int) int {
	f := s.draw(1, of)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f > n || *left == 0 {
		return 0
	}
	*left--
	return f
}

var (
	errUnclear = errors.New("the connection broke")
	errBusy    = &graphiti.StatusError{Code: 503}
)

func (s *sim) Write(_ context.Context, group string, messages []graphiti.Row) error {
	if time.Now().Before(s.back) {
		return &net.OpError{Op: "dial", Err: errUnclear}
	}
	time.Sleep(time.Duration(s.draw(1, 50)) * time.Millisecond)
	s.work()
	accept := func() {
		for _, m := range messages {
			s.accept(accepted{group: group, Row: m})
		}
	}
	switch s.fault(6) {
	case 1: // refused, so certainly not stored
		return errBusy
	case 2: // accepted and lost
	case 3: // an unclear answer, and stored
		accept()
		return errUnclear
	case 4: // an unclear answer, and not stored
		return errUnclear
	case 5: // an unclear answer, and stored late
		at := time.Now().Add(time.Duration(s.draw(0, 9)) * time.Second)
		for _, m := range messages {
			s.late = append(s.late, accepted{group: group, Row: m, at: at})
		}
		slices.SortStableFunc(s.late, func(a, b accepted) int { return a.at.Compare(b.at) })
		return errUnclear
	case 6: // the memory restarts
		s.restart()
		accept()
	default:
		accept()
	}
	return nil
}

func (s *sim) Episodes(_ context.Context, group string, n int) (list []graphiti.Row, err error) {
	time.Sleep(time.Millisecond)
	s.work()
	if s.fault(1) > 0 {
		return nil, errUnclear
	}
	for _, m := range s.kept[group] {
		list = append(list, m.Row)
	}
	slices.SortStableFunc(list, func(a, b graphiti.Row) int { return a.Said.Compare(b.Said) })
	return list[max(0, len(list)-n):], nil
}

func (s *sim) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	return nil, errUnclear
}

func (s *sim) Forget(_ context.Context, group string) error {
	s.work()
	delete(s.kept, group)
	return nil
}

func (s *sim) ForgetEpisodes(_ context.Context, group string, meant func(*graphiti.Row) bool) (names []string, err error) {
	s.work()
	if s.fault(1) > 0 {
		return nil, errUnclear
	}
	s.kept[group] = slices.DeleteFunc(s.kept[group], func(m accepted) bool {
		if meant(&m.Row) {
			names = append(names, m.Name)
			return true
		}
		return false
	})
	return names, nil
}

// run delivers until ok is true, with restarts of the proxy at random.
func (s *sim) run(over func() bool) {
	ok := func() bool {
		s.ledger.mu.Lock()
		defer s.ledger.mu.Unlock()
		return over()
	}
	listed := false
	for begun := time.Now(); ; {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		l := New(Options{
			Ledger: s.ledger, Memory: s, Apart: s.apart, StallAfter: func() time.Duration { return 5 * time.Minute }, Timeout: func() time.Duration { return time.Minute },
			OnDelivered: func(Delivery) {}, OnSeen: func(string, []graphiti.Row) {},
			Log: slog.New(slog.DiscardHandler),
		}, listed)
		go func() { // ends with stop
			l.Run(ctx)
			close(ended)
		}()
		end := sync.OnceFunc(func() { stop(); <-ended })
		defer end()
		until := time.Now().Add(365 * 24 * time.Hour)
		if s.fault(1) > 0 {
			until = time.Now().Add(time.Duration(s.draw(1, 60_000)) * time.Millisecond)
		}
		done := false
		for done = ok(); !done && time.Now().Before(until); done = ok() {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if time.Since(begun) > 5*24*time.Hour {
				for _, r := range s.ledger.rows {
					s.t.Logf("%+v", *r)
				}
				s.t.Fatalf("it does not end: %+v; %+v", l.Status(), s.ledger.withdrawn)
			}
		}
		end()
		if listed = l.listed; done {
			return
		}
	}
}

// times returns how often the groups hold a message.
func (s *sim) times(name string) (n int) {
	for _, list := range s.kept {
		for _, m := range list {
			if m.Name == name {
				n++
			}
		}
	}
	return n
}

// TestNoTurnIsLost checks that, with any faults of calls, looks, deletions, workers and the ledger,
// and restarts of the proxy, each turn arrives or is dead after three losses, the last of them alone.
// Without a fault it arrives once, and in order. A forgotten turn is not there at the end.
func TestNoTurnIsLost(t *testing.T) {
	twice, all := 0, 0
	seeds := uint64(40)
	if os.Getenv("LONG_TESTS") != "" {
		seeds = 300
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, again := simulate(t, seed)
				all, twice = all+n, twice+again
			})
		})
	}
	t.Logf("%d of %d turns twice", twice, all)
	if twice > all/50 { // chance decides: usually it is one turn in two hundred
		t.Errorf("%d of %d turns arrived twice", twice, all)
	}
}

// draw returns a number from first to last.
func (s *sim) draw(first, last int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return first + s.rand.IntN(last-first+1)
}

func simulate(t *testing.T, seed uint64) (n, twice int) {
	s := &sim{t: t, rand: rand.New(rand.NewPCG(seed, 1)), ledger: &shelf{}, poison: make(map[string]bool), queues: make(map[string][]accepted), kept: make(map[string][]accepted)}
	s.apart, s.faults = s.draw(0, 1) == 1, s.draw(0, 30)
	writes := s.draw(0, 10)
	s.ledger.fault = func(n int) int { return s.one(&writes, n, 20) }
	s.takes = []time.Duration{0, 10 * time.Millisecond, time.Second, 10 * time.Second}[s.draw(0, 3)]
	faulty := s.faults > 0
	n, groups := s.draw(1, 40), s.draw(1, 5)
	for i := range n {
		s.ledger.add(fmt.Sprint("g", s.draw(1, groups)), time.Now())
		if s.draw(0, 15) == 15 {
			s.poison[fmt.Sprint(i+1)], faulty = true, true
		}
	}
	forgotten, said := make(map[string]bool), time.Now()
	s.run(func() bool {
		if s.draw(0, 2000) == 7 {
			r := s.ledger.rows[s.draw(0, n-1)]
			if r.state != "forgotten" && r.state != "dead" {
				forgotten[r.Turn] = true
				s.ledger.forget(&r.Copy)
			}
		}
		waits := false
		for _, r := range s.ledger.rows {
			if r.state == "sent" && time.Since(said) > 6*time.Hour { // a later turn proves it lost
				s.ledger.add(r.Group, time.Now())
				said = time.Now()
			}
			waits = waits || r.state == "pending" || r.state == "sent"
		}
		if waits {
			return false
		}
		for _, w := range s.ledger.withdrawn {
			if w.Sent > 0 { // a later turn proves that it will not appear
				s.ledger.add(w.Group, time.Now())
				return false
			}
		}
		return len(s.ledger.withdrawn) == 0
	})
	time.Sleep(time.Hour)
	s.work()
	return n, s.check(faulty, forgotten)
}

func (s *sim) check(faulty bool, forgotten map[string]bool) (twice int) {
	for _, r := range s.ledger.rows {
		dead := r.state == "dead"
		if dead && (r.Losses < maxLosses || r.reason != reasonPoison) {
			s.t.Errorf("turn %s is dead after %d losses: %s", r.Turn, r.Losses, r.reason)
		}
		for _, m := range []string{"user", "assistant"} {
			switch n := s.times(r.Turn + "." + m); {
			case forgotten[r.Turn] && n > 0:
				s.t.Errorf("turn %s was forgotten, and is there", r.Turn)
			case forgotten[r.Turn] || dead:
			case n == 0:
				s.t.Errorf("turn %s counts as %s, and its %s message is not there", r.Turn, r.state, m)
			case n > 1 && !faulty:
				s.t.Errorf("turn %s is there %d times without a fault", r.Turn, n)
			case n > 1 && m == "user":
				twice++
			}
		}
	}
	if faulty {
		return twice
	}
	for group, list := range s.kept {
		names := make([]string, len(list))
		for i := range list {
			names[i] = fmt.Sprintf("%08s", strings.TrimSuffix(list[i].Name, ".assistant"))
		}
		if numbers := sorted(list); !numbers {
			s.t.Errorf("group %s is not in order: %q", group, names)
		}
	}
	return twice
}

// sorted reports whether messages are in the order of their turns.
func sorted(list []accepted) bool {
	return slices.IsSortedFunc(list, func(a, b accepted) int {
		if len(a.Text) != len(b.Text) {
			return len(a.Text) - len(b.Text)
		}
		return strings.Compare(a.Text, b.Text)
	})
}
