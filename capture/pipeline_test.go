package capture

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked { // tests wait more than they compute
		if err := flag.Set("test.parallel", "12"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(inMemory{m})
}

// inMemory creates the temporary files of the tests in RAM if it can, because each turn
// syncs its spool.
type inMemory struct{ *testing.M }

func (m inMemory) Run() int {
	if os.Getenv("TMPDIR") != "" {
		return m.M.Run()
	}
	dir, err := os.MkdirTemp("/dev/shm", "graphiti-proxy-test-")
	if err != nil {
		return m.M.Run() // on disk
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("TMPDIR", dir); err != nil {
		panic(err)
	}
	return m.M.Run()
}

// Memory is a remote memory.
type Memory interface {
	deliver.Backend
	Apart() bool
}

// fakeMemory stores all messages, unless fail returns an error.
type fakeMemory struct {
	mu   sync.Mutex
	got  map[string][]string // texts by group, in order
	from map[string]string   // speakers and sources by group
	rows map[string][]graphiti.Row
	fail func(group string, m []graphiti.Row) error
}

func (f *fakeMemory) Write(_ context.Context, group string, messages []graphiti.Row) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		if err := f.fail(group, messages); err != nil {
			return err
		}
	}
	if f.got == nil {
		f.got, f.from, f.rows = make(map[string][]string), make(map[string]string), make(map[string][]graphiti.Row)
	}
	for _, m := range messages {
		f.got[group] = append(f.got[group], m.Text)
		f.from[group] += m.Speaker + m.Source
		f.rows[group] = append(f.rows[group], m)
	}
	return nil
}

func (f *fakeMemory) sources(group string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.from[group]
}

func (f *fakeMemory) Apart() bool { return false }

func (*fakeMemory) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	return nil, nil
}

func (f *fakeMemory) Health(context.Context) error { return nil }

func (f *fakeMemory) Episodes(_ context.Context, group string, n int) ([]graphiti.Row, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.rows[group]
	return slices.Clone(list[max(0, len(list)-n):]), nil
}

func (f *fakeMemory) Forget(_ context.Context, group string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.got, group)
	delete(f.rows, group)
	return nil
}

func (f *fakeMemory) ForgetEpisodes(context.Context, string, func(*graphiti.Row) bool) ([]string, error) {
	return nil, nil
}

func (f *fakeMemory) contents(group string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.got[group]...)
}

func pipeline(t testing.TB, path string, m Memory, change ...func(*Options)) *Pipeline {
	t.Helper()
	o := Options{
		Bounds:      Bounds{MaxChars: 8000, Timeout: time.Second, StallAfter: time.Second},
		Destination: destination(t, path, m),
		Log:         slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	p, err := Open(o)
	must(t, err)
	t.Cleanup(func() { stop(t, p) })
	return p
}

// destination is a memory at path with copies in m.
func destination(t testing.TB, path string, m Memory) Destination {
	t.Helper()
	e, err := embedded.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return Destination{Ledger: e.Ledger, Graph: m, Apart: m.Apart()}
}

// openLedger opens the ledger of a memory without a pipeline.
func openLedger(t testing.TB, path string) *ledger.Ledger {
	t.Helper()
	e, err := embedded.Open(path)
	must(t, err)
	l := e.Ledger(func(tn *ledger.Turn, scope graphiti.Scope) []graphiti.Row {
		return messagesOf(tn, scope, 8000, time.Now())
	})
	l.Copied(func(*ledger.Turn) bool { return true })
	return l
}

// box returns the outbox of a pipeline with a remote memory.
func box(p *Pipeline) *outbox { return p.out }

// embeddedPipeline returns a pipeline that records turns in an embedded memory at path, and
// that memory.
func embeddedPipeline(t testing.TB, path string, change ...func(*Options)) (*Pipeline, *embedded.Store) {
	t.Helper()
	e, err := embedded.Open(path)
	must(t, err)
	o := Options{
		Bounds:      Bounds{MaxChars: 8000},
		Destination: Destination{Ledger: e.Ledger},
		Log:         slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	p, err := Open(o)
	must(t, err)
	t.Cleanup(func() {
		stop(t, p)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, e
}

// heldBy returns the texts that an embedded memory stores for a group, in its order.
func heldBy(t testing.TB, e *embedded.Store, group string) (contents []string) {
	t.Helper()
	for r, err := range e.Rows(context.Background(), group, graphiti.Filter{Text: true}) {
		must(t, err)
		contents = append(contents, r.Text)
	}
	return contents
}

func stop(t testing.TB, p *Pipeline) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helptest.Patience)
	defer cancel()
	must(t, p.Shutdown(ctx))
}

func turn(id string, groups ...string) ledger.Turn {
	tn := ledger.Turn{ID: id, User: "user " + id, Said: time.Now(), Answered: time.Now(), Generation: forgets.Load()}
	for _, g := range groups {
		tn.Targets = append(tn.Targets, graphiti.Target{Scope: graphiti.ScopeUser, Group: g})
	}
	return tn
}

func add(t testing.TB, p *Pipeline, tn ledger.Turn) {
	t.Helper()
	must(t, p.Add(context.Background(), tn))
}

var waitFor = helptest.Until

// TestTurnsOfAGroupStayInOrder checks that a group gets its turns in order, even after
// failures.
func TestTurnsOfAGroupStayInOrder(t *testing.T) {
	t.Parallel()
	calls := 0
	m := &fakeMemory{fail: func(string, []graphiti.Row) error {
		if calls++; calls < 3 {
			return &graphiti.StatusError{Code: 503}
		}
		return nil
	}}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m)
	var want []string
	for i := range 25 {
		add(t, p, turn(fmt.Sprint(i), "g"))
		want = append(want, fmt.Sprintf("user %d", i))
	}
	waitFor(t, "delivery after failures", func() bool { return p.Status().Delivered == 25 })
	if diff := cmp.Diff(want, m.contents("g")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := p.Status(); s.Failing != nil || s.LastError != "" {
		t.Errorf("still failing: %+v", s)
	}
}

// TestRefusedTurnIsPutAside checks that a refused turn is put aside and the rest of its
// batch is delivered.
func TestRefusedTurnIsPutAside(t *testing.T) {
	m := &fakeMemory{fail: func(_ string, messages []graphiti.Row) error {
		for _, msg := range messages {
			if msg.Text == "user 2" {
				return &graphiti.StatusError{Code: 422, Detail: "no"}
			}
		}
		return nil
	}}
	p := pipeline(t, filepath.Join(t.TempDir(), "spool.db"), m)
	for i := range 5 {
		add(t, p, turn(fmt.Sprint(i), "g"))
	}
	waitFor(t, "the others", func() bool { s := p.Status(); return s.Delivered == 4 && s.Dead == 1 && s.Pending == 0 })
	if diff := cmp.Diff([]string{"user 0", "user 1", "user 3", "user 4"}, m.contents("g")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUndeliveredTurnSurvivesRestart checks that an undelivered turn survives the end of the
// process.
func TestUndeliveredTurnSurvivesRestart(t *testing.T) {
	t.Parallel()
	down := &fakeMemory{fail: func(string, []graphiti.Row) error { return errors.New("down") }}
	path := filepath.Join(t.TempDir(), "spool.db")
	p := pipeline(t, path, down)
	add(t, p, turn("1", "g"))
	waitFor(t, "an attempt", func() bool { return p.Status().Failing != nil })
	if s := p.Status(); s.LastError == "" || s.Oldest == nil || s.Pending != 1 {
		t.Errorf("got %+v, want LastError and Oldest set, Pending 1", s)
	}
	stop(t, p)
	if err := p.Add(context.Background(), turn("2", "g")); !errors.Is(err, ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
	m := &fakeMemory{}
	p = pipeline(t, path, m)
	waitFor(t, "delivery", func() bool { return p.Status().Delivered == 1 })
}

func TestMessagesOfATurn(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	tn := ledger.Turn{
		ID: "ab", Client: "OpenAI", Said: now.Add(-time.Minute), Answered: now.Add(time.Hour), Work: []string{"changed a.go"}, // for projects only
		User:      "<graphiti_memory>\n- x\n</graphiti_memory>\n\nhi " + string(make([]rune, 0)) + "ééééé",
		Assistant: "You said: <graphiti_memory> and more",
	}
	got := messagesOf(&tn, graphiti.ScopeUser, 16, now)
	source := `{"source":"graphiti-proxy","scope":"user","client":"OpenAI"}`
	want := []graphiti.Row{
		{Name: "graphiti-proxy.turn.ab.user", Role: "user", Text: "hi ééééé", Said: now.Add(-time.Minute), Source: source},
		{Name: "graphiti-proxy.turn.ab.assistant", Role: "assistant", Text: "You said:", Said: now, Source: source},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := messagesOf(&ledger.Turn{User: " ", Assistant: ""}, graphiti.ScopeUser, 10, now); got != nil {
		t.Errorf("got %+v, want no messages of an empty turn", got)
	}
}
