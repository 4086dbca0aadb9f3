package capture

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// service returns a stand-in Graphiti and a client of it.
func service(t *testing.T, o graphititest.Options) (*graphititest.Graphiti, *rest.Client) {
	t.Helper()
	s, err := graphititest.Start(o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, client(t, s.URL())
}

func client(t *testing.T, url string) *rest.Client {
	t.Helper()
	r, err := rest.New(remote.Options{Endpoint: url})
	must(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// verifying returns a pipeline whose looks may take their time.
func verifying(t *testing.T, path string, m Memory, change ...func(*Options)) *Pipeline {
	t.Helper()
	patient := func(o *Options) { o.Timeout = helptest.Patience }
	return pipeline(t, path, m, append([]func(*Options){patient}, change...)...)
}

// spoken returns a turn of two messages.
func spoken(id string, groups ...string) ledger.Turn {
	tn := turn(id, groups...)
	tn.Assistant = "assistant " + id
	return tn
}

// once checks that a group holds both messages of each turn exactly once, and nothing else.
func once(t *testing.T, s *graphititest.Graphiti, group string, turns ...string) {
	t.Helper()
	var got, want []string
	count := make(map[string]int)
	for _, e := range s.Episodes(group) {
		count[e.Name]++
		got = append(got, e.Name)
	}
	for _, id := range turns {
		for _, r := range []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant} {
			want = append(want, graphiti.EpisodeName(id, r))
		}
	}
	for _, name := range want {
		if count[name] != 1 {
			t.Errorf("group %s holds %s %d times", group, name, count[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("group %s holds %d episodes, want %d: %q", group, len(got), len(want), got)
	}
}

// TestEveryFaultEveryTurnOnce checks that each turn is in its groups exactly once, despite
// any fault of a call.
func TestEveryFaultEveryTurnOnce(t *testing.T) {
	t.Parallel()
	faults := map[string]graphititest.Fault{
		"refused":           graphititest.Refuse(),
		"hangs":             graphititest.Hang(),
		"error":             graphititest.Answer(500, ""),
		"unavailable":       graphititest.Answer(503, ""),
		"too many":          graphititest.Answer(429, "0"),
		"garbage":           graphititest.Garbage(),
		"failed but stored": graphititest.FailedButStored(),
		"accepted but lost": graphititest.AcceptedButLost(),
		"slow":              graphititest.Slow(time.Second), // longer than the timeout
		"huge":              graphititest.Huge(5 << 20),
	}
	for name, fault := range faults {
		for _, call := range []graphititest.Call{graphititest.Messages, graphititest.Episodes} {
			for _, times := range []int{7, 1} {
				if times > 1 && name != "refused" && name != "failed but stored" && name != "accepted but lost" {
					continue // further answers of these kinds only take longer
				}
				t.Run(fmt.Sprintf("%s, %s, %d times", call, name, times), func(t *testing.T) {
					t.Parallel()
					s, m := service(t, graphititest.Options{Delay: time.Millisecond})
					for range times {
						s.Next(call, fault)
					}
					timeout := helptest.Patience
					if name == "hangs" || name == "slow" { // not a stalled worker
						timeout = 500 * time.Millisecond
					}
					arriveOnce(t, s, m, 10, timeout)
				})
			}
		}
	}
}

// arriveOnce adds n turns with two groups, and checks that each arrives once.
func arriveOnce(t *testing.T, s *graphititest.Graphiti, m Memory, n int, timeout time.Duration) {
	t.Helper()
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m, func(o *Options) {
		if o.Timeout = timeout; timeout < helptest.Patience {
			o.StallAfter = 5 * time.Second
		}
	})
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprint(i))
		add(t, p, spoken(ids[i], "a", "b"))
	}
	waitFor(t, "all turns", func() bool { s := p.Status(); return s.Verified == 2*n && s.Pending == 0 })
	once(t, s, "a", ids...)
	once(t, s, "b", ids...)
}

// TestWorkerThatDiesInSilence checks that sending stops after a worker dies, that the
// status reports the stall, and that each turn arrives once after a restart.
func TestWorkerThatDiesInSilence(t *testing.T) {
	t.Parallel()
	var dies atomic.Bool
	dies.Store(true)
	s, m := service(t, graphititest.Options{
		Delay:  time.Millisecond,
		Raises: func(_, content string) bool { return strings.Contains(content, "user 5") && dies.Swap(false) },
	})
	path := filepath.Join(t.TempDir(), "spool.db")
	p := verifying(t, path, m)
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprint(i))
		add(t, p, spoken(ids[i], "a"))
	}
	waitFor(t, "the stall to be noticed", func() bool { return p.Status().Stalled != nil })
	st := p.Status()
	if st.Verified != 5 || st.Pending != 15 || st.UnderWay > 1 {
		t.Errorf("got %+v, want Verified 5, Pending 15, UnderWay at most 1", st)
	}
	before, looks := s.Counts().Accepted, s.Counts().Calls[graphititest.Episodes]
	waitFor(t, "more looks", func() bool { return s.Counts().Calls[graphititest.Episodes] >= looks+3 })
	after := s.Counts() // a message tests the worker, and is looked for before the next one
	if sent, looked := after.Accepted-before, after.Calls[graphititest.Episodes]-looks; sent > looked {
		t.Errorf("%d messages were sent to a dead worker, and looked for %d times", sent, looked)
	}
	s.Restart()
	waitFor(t, "all turns", func() bool { return p.Status().Verified == 20 })
	once(t, s, "a", ids...)
	if st := p.Status(); st.Stalled != nil || st.Lost == 0 {
		t.Errorf("got %+v, want no stall, Lost not 0", st)
	}
}

// TestOneMessageLostOnTheWay checks that a lost turn is sent again after the usual time of a turn,
// long before ingest.stall_after.
func TestOneMessageLostOnTheWay(t *testing.T) {
	g := &graph{takes: time.Second}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		add(t, p, spoken("0", "a"))
		until(t, "the first turn", func() bool { return p.Status().Verified == 1 })
		add(t, p, spoken("1", "a"))
		until(t, "the second turn", func() bool { return p.Status().UnderWay == 1 })
		g.restart() // drops it
		begun := time.Now()
		add(t, p, spoken("2", "a"))
		until(t, "all turns", func() bool { return p.Status().Verified == 3 })
		if st := p.Status(); st.Lost != 1 || st.Stalled != nil || time.Since(begun) > time.Minute {
			t.Errorf("got %+v after %v, want Lost 1, no stall, a minute at most", st, time.Since(begun))
		}
		for _, turn := range []string{"0", "1", "2"} {
			if n := g.times("a", turn); n != 1 {
				t.Errorf("turn %s is there %d times, want once", turn, n)
			}
		}
	})
}

// TestHalfATurnLost checks that a turn is completed if the worker died between its two
// messages.
func TestHalfATurnLost(t *testing.T) {
	t.Parallel()
	var dies atomic.Bool
	dies.Store(true)
	s, m := service(t, graphititest.Options{
		Raises: func(_, content string) bool { return strings.Contains(content, "assistant 1") && dies.Swap(false) },
	})
	p := verifying(t, filepath.Join(t.TempDir(), "spool.db"), m)
	for i := range 3 {
		add(t, p, spoken(fmt.Sprint(i), "a"))
	}
	waitFor(t, "the stall to be noticed", func() bool { return p.Status().Stalled != nil })
	s.Restart()
	waitFor(t, "all turns", func() bool { return p.Status().Verified == 3 })
	once(t, s, "a", "0", "1", "2")
}

// TestInDoubtAfterACrash checks that a turn that was sent but not recorded as delivered
// before a crash is looked up, and sent again only if it is missing.
func TestInDoubtAfterACrash(t *testing.T) {
	t.Parallel()
	for _, arrived := range []bool{true, false} {
		t.Run(fmt.Sprintf("arrived %t", arrived), func(t *testing.T) {
			s, m := service(t, graphititest.Options{})
			path := filepath.Join(t.TempDir(), "spool.db")
			sp := openLedger(t, path)
			tn := spoken("1", "a")
			must(t, helptest.ErrorOf(sp.Add(context.Background(), []ledger.Turn{tn}, time.Now())))
			list, err := sp.Next(context.Background(), "a", 10)
			if err != nil || len(list) != 1 {
				t.Fatalf("got %v, %v, want no error, 1 of them", len(list), err)
			}
			if ok, err := sp.MarkSent(&list[0]); err != nil || !ok {
				t.Fatal(ok, err)
			}
			if arrived {
				must(t, m.Write(context.Background(), "a", messagesOf(&tn, "user", 8000, time.Now())))
			}
			if err := sp.Close(); err != nil { // kill -9 leaves the same file
				t.Fatal(err)
			}
			p := verifying(t, path, m)
			waitFor(t, "the turn", func() bool { return p.Status().Verified == 1 })
			once(t, s, "a", "1")
		})
	}
}

// TestDownMemoryIsLeftAlone checks that a memory that is down gets few messages, and that all
// turns arrive after its return.
func TestDownMemoryIsLeftAlone(t *testing.T) {
	g := &graph{apart: true}
	down := true
	calls := 0
	g.fails = func(string, string) error {
		if calls++; down {
			return &graphiti.StatusError{Code: 503}
		}
		return nil
	}
	inBubble(t, g, func(t *testing.T, p *Pipeline, _ *logged) {
		for i := range 40 {
			add(t, p, spoken(fmt.Sprint(i), fmt.Sprint("g", i)))
		}
		time.Sleep(10 * time.Minute)
		if st := p.Status(); st.Failing == nil {
			t.Errorf("got %+v, want a failure", st)
		}
		g.set(func() {
			if calls > 300 { // one every two seconds
				t.Errorf("%d calls in ten minutes", calls)
			}
			down = false
		})
		until(t, "all turns", func() bool { return p.Status().Verified == 40 })
		if st := p.Status(); st.Failing != nil {
			t.Errorf("got %+v, want no failure", st)
		}
	})
}

// TestDeadTurnsCanBeRetriedAndDropped checks that dead turns can be retried and dropped,
// and that the counts stay exact.
func TestDeadTurnsCanBeRetriedAndDropped(t *testing.T) {
	t.Parallel()
	s, m := service(t, graphititest.Options{})
	s.Always(graphititest.Messages, func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		body := r.Body.(interface{ Bytes() []byte }).Bytes() //nolint:forcetypeassert // the stand-in's
		if !bytes.Contains(body, []byte("user good")) {
			serve = func(w http.ResponseWriter, r *http.Request) { graphititest.Answer(422, "")(w, r, nil) }
		}
		serve(w, r)
	})
	path := filepath.Join(t.TempDir(), "spool.db")
	p := verifying(t, path, m)
	for i := range 5 {
		add(t, p, spoken(fmt.Sprint(i), "a"))
	}
	add(t, p, spoken("good", "b")) // without it, the memory refuses all
	waitFor(t, "all to be refused", func() bool { return p.Status().Dead == 5 && p.Status().Verified == 1 })
	list, all, err := p.Turns(context.Background(), ledger.ListOptions{Limit: 2, Text: true})
	if err != nil || all != 5 || len(list) != 2 || list[0].User != "user 0" || list[0].Condition != ledger.Dead {
		t.Fatalf("got %+v %d %v, want no error, 5 in all, 2 of them, User \"user 0\", Condition ledger.Dead", list, all, err)
	}
	if n, err := p.Drop([]int64{list[0].Number, 999}); n != 1 || err != nil {
		t.Errorf("got %d turns, %v, want 1 and no error", n, err)
	}
	s.Always(graphititest.Messages, nil)
	if n, err := p.Retry([]int64{list[1].Number}); n != 1 || err != nil {
		t.Errorf("got %d turns, %v, want 1 and no error", n, err)
	}
	waitFor(t, "one", func() bool { return p.Status().Verified == 2 })
	if n, err := p.Retry(nil); n != 3 || err != nil {
		t.Errorf("got %d turns, %v, want 3 and no error", n, err)
	}
	waitFor(t, "the others", func() bool { st := p.Status(); return st.Verified == 5 && st.UnderWay == 0 })
	want := QueueStatus{Delivered: 5, Verified: 5, Dropped: 1}
	if diff := cmp.Diff(want, p.Status(), cmpopts.IgnoreFields(QueueStatus{}, "Delivers", "Episodes")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	once(t, s, "a", "1", "2", "3", "4")
	stop(t, p)
	// The counts outlive the process.
	p = verifying(t, path, m)
	if diff := cmp.Diff(want, p.Status(), cmpopts.IgnoreFields(QueueStatus{}, "Delivers", "Episodes")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
