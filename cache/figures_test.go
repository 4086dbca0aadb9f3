package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

var (
	ann = graphiti.Who{User: "user:ann"}
	bob = graphiti.Who{User: "user:bob", Tenant: "t"}
)

func shown(block string) inject.Plan {
	return inject.Plan{Decided: true, Block: block, Outcome: inject.Outcome{Status: inject.StatusRecalled, Facts: 1, Chars: len(block), Took: time.Millisecond}}
}

// days returns the figures of today and of the six days before.
func days(t testing.TB, f *Figures, owner string) (week []Counts, together bool) {
	t.Helper()
	week, together, err := f.Since(t.Context(), time.Now().AddDate(0, 0, -6), 7, owner)
	must(t, err)
	return week, together
}

// backends runs a test with each store. Each call of open starts another
// process, which end stops.
func backends(t *testing.T, f func(t *testing.T, open func() (s *State, end func()))) {
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state.db")
		f(t, func() (*State, func()) {
			s := openState(t, path)
			return s, func() { s.Figures.Close(); _ = s.Close() }
		})
	})
}

// TestFiguresOfAllProcessesAddUp checks that the figures of successive processes add up.
func TestFiguresOfAllProcessesAddUp(t *testing.T) {
	backends(t, func(t *testing.T, open func() (*State, func())) {
		for n := range 3 {
			s, end := open()
			s.Figures.Start(slog.New(slog.DiscardHandler))
			s.Figures.Asked(ann, shown("x"))
			if week, _ := days(t, s.Figures, "user:ann"); week[6].Blocks != int64(n+1) {
				t.Errorf("process %d: %+v", n, week[6])
			}
			end() // writes the figures
		}
	})
}

// TestFiguresAreBounded checks that owners above the limit are counted together and that
// the answer reports it.
func TestFiguresAreBounded(t *testing.T) {
	s := openState(t, filepath.Join(t.TempDir(), "state.db"))
	defer s.Close()
	const more = 50
	for i := range maxOwners + more {
		who := graphiti.Who{User: fmt.Sprintf("user:%d", i)}
		s.Figures.Asked(who, shown("x"))
		s.Figures.Asked(who, shown("x"))
	}
	if n := len(s.Figures.owners); n != maxOwners+1 {
		t.Errorf("%d owners are counted apart, want %d and the rest", n, maxOwners)
	}
	for owner, want := range map[string]int64{"user:0": 2, fmt.Sprintf("user:%d", maxOwners): 0, "": 2 * (maxOwners + more)} {
		for range 2 {
			week, together := days(t, s.Figures, owner)
			if week[6].Blocks != want || !together {
				t.Errorf("of %q: %+v (together %v), want %d blocks", owner, week[6], together, want)
			}
			must(t, s.Figures.write())
		}
	}
}

// full is a database that can fail to write.
type full struct {
	database.DB

	mu     sync.Mutex // guards the fields below
	fails  error
	writes int
}

// tried returns the number of writes. Later writes fail with err.
func (d *full) tried(err error) (writes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = err
	return d.writes
}

func (d *full) Write(ctx context.Context, fn func(*database.Tx) error) error {
	d.mu.Lock()
	d.writes++
	err := d.fails
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return d.DB.Write(ctx, fn)
}

// TestFiguresAreWrittenNowAndThen checks that new figures are written within seconds and on
// Close, and unchanged figures never. Figures that cannot be written are retried, and those
// of past days leave the RAM once written.
func TestFiguresAreWrittenNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file, err := openFile(filepath.Join(t.TempDir(), "state.db"), time.Hour)
		must(t, err)
		defer file.close()
		noRoom := errors.New("the disk is full")
		m := &full{DB: file.db, fails: noRoom}
		f := newFigures(&tables{db: m})
		var logged linesLogged
		f.Start(slog.New(&logged))
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait() // a write may begin at the same moment
		}
		pass(time.Minute)
		if writes := m.tried(noRoom); writes != 0 {
			t.Errorf("%d writes of nothing", writes)
		}
		f.Asked(ann, shown("x"))
		pass(time.Minute)
		writes := m.tried(nil)
		if week, _ := days(t, f, ""); week[6].Blocks != 1 || writes < 2 || logged.n.Load() != 1 {
			t.Errorf("while nothing can be written: %+v, %d tries, %d lines in the log", week[6], writes, logged.n.Load())
		}
		pass(2 * writeEvery)
		writes = m.tried(nil)
		var lists int
		if err := m.QueryRow(t.Context(), "SELECT count(DISTINCT list) FROM figures", nil, &lists); err != nil || lists != 1 {
			t.Errorf("when it can be written again: %d lists, %v, want 1", lists, err)
		}
		pass(time.Minute)
		if again := m.tried(nil); again != writes {
			t.Error("what has not changed is written again")
		}
		pass(24 * time.Hour)
		f.Asked(bob, shown("x"))
		f.Close()
		if week, _ := days(t, f, ""); len(f.owners) != 1 || week[5].Blocks != 1 || week[6].Blocks != 1 {
			t.Errorf("a day later: %d owners in RAM, %+v", len(f.owners), week)
		}
	})
}

// linesLogged counts log lines.
type linesLogged struct{ n atomic.Int64 }

func (c *linesLogged) Enabled(context.Context, slog.Level) bool  { return true }
func (c *linesLogged) Handle(context.Context, slog.Record) error { c.n.Add(1); return nil }
func (c *linesLogged) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c *linesLogged) WithGroup(string) slog.Handler             { return c }
