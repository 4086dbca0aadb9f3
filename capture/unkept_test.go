package capture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// TestTurnsWaitForTheDisk checks that turns wait in RAM, in order and within limits, until
// the disk accepts them again. Turns beyond the limits are refused and counted, and
// Shutdown reports the turns that remain.
func TestTurnsWaitForTheDisk(t *testing.T) {
	t.Parallel()
	t.Run("of a memory elsewhere", func(t *testing.T) {
		m := &fakeMemory{}
		turnsWaitForTheDisk(t, m.contents, func(dir string, change func(*Options)) *Pipeline {
			return pipeline(t, filepath.Join(dir, "spool.db"), m, change)
		})
	})
	t.Run("of the embedded memory", func(t *testing.T) {
		var e *embedded.Store
		turnsWaitForTheDisk(t, func(group string) []string { return heldBy(t, e, group) }, func(dir string, change func(*Options)) (p *Pipeline) {
			p, e = embeddedPipeline(t, filepath.Join(dir, "memory.db"), change)
			return p
		})
	})
}

func turnsWaitForTheDisk(t *testing.T, contents func(group string) []string, open func(dir string, change func(*Options)) *Pipeline) {
	if os.PathSeparator != '/' {
		t.Skip("open files cannot be moved here")
	}
	dir := filepath.Join(t.TempDir(), "data")
	log := &lockedLog{}
	p := open(dir, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	away := func() {
		t.Helper()
		must(t, os.Rename(dir, dir+"-away"))
	}
	back := func() {
		t.Helper()
		must(t, os.Rename(dir+"-away", dir))
		if wrong := p.Check(); wrong != nil {
			t.Fatal(wrong)
		}
	}
	away()
	secret := "sk-proj-" + strings.Repeat("aB3dE6gH9", 5)
	var want []string
	for i := range 300 {
		tn := turn(fmt.Sprint("t", i), "g")
		if i == 7 {
			tn.User += " " + secret
		}
		add(t, p, tn)
		if !p.Kept(tn.ID, tn.Targets) {
			t.Fatal("it would be taken again")
		}
		add(t, p, tn) // a repeated request
	}
	if p.waiting.turns[7].User == "user t7 "+secret {
		t.Error("a credential waits in RAM")
	}
	s := p.Status()
	if s.InMemory != 300 || s.NotKept != 0 || s.Unkept == nil || s.UnkeptError == "" || s.UnkeptRemedy == "" {
		t.Errorf("got %+v, want InMemory 300, NotKept 0, and Unkept with its error and remedy", s)
	}
	if _, err := p.AddAll(context.Background(), []ledger.Turn{turn("asked", "g")}); err == nil {
		t.Error("a text that somebody waits for is said to be kept")
	}
	if p.AddAsync([]ledger.Turn{turn("note", "h")}) {
		waitFor(t, "the note to wait", func() bool { return p.Status().InMemory == 301 })
	}
	back()
	add(t, p, turn("last", "g"))
	for i := range 300 {
		want = append(want, fmt.Sprint("user t", i))
	}
	want = append(want, "user last")
	waitFor(t, "delivery", func() bool { return len(contents("g")) == len(want) && len(contents("h")) == 1 })
	got := contents("g")
	got[7] = want[7]
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if s := p.Status(); s.InMemory != 0 || s.Unkept != nil || !strings.Contains(log.String(), "turns are kept on disk again") {
		t.Errorf("got %+v, want InMemory 0, Unkept not set, and a line that turns are kept again", s)
	}

	away()
	const room = waitingBytes / 32 // as if the rest were taken
	p.waiting.mu.Lock()
	p.waiting.bytes += waitingBytes - room
	p.waiting.mu.Unlock()
	big := strings.Repeat("x", 8000)
	refused := 0
	for i := range room/len(big) + 10 {
		tn := turn(fmt.Sprint("b", i), "g")
		tn.User = big
		if err := p.Add(context.Background(), tn); err != nil {
			refused++
		}
	}
	if s := p.Status(); refused == 0 || s.NotKept != refused || p.waiting.bytes > waitingBytes {
		t.Errorf("%d refused, %+v", refused, s)
	}
	var lost *LostError
	if err := p.Shutdown(context.Background()); !errors.As(err, &lost) || lost.Turns != p.Status().InMemory || strings.Contains(err.Error(), big[:20]) {
		t.Errorf("what ends with the process: %v", err)
	}
	if !strings.Contains(log.String(), "turns are lost with the process") {
		t.Error("nothing is said of what ends with the process")
	}
}

// TestJournal checks that a turn reaches the memory if its database failed when the turn, or a
// history with it, was to be recorded.
func TestJournal(t *testing.T) {
	if os.PathSeparator != '/' {
		t.Skip("open files cannot be moved here")
	}
	for name, record := range map[string]func(p *Pipeline, t ledger.Turn) error{
		"turn":    func(p *Pipeline, t ledger.Turn) error { return p.Add(context.Background(), t) },
		"history": func(p *Pipeline, t ledger.Turn) error { p.Backfill(History{Turns: []ledger.Turn{t}}); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			p, e := embeddedPipeline(t, filepath.Join(dir, "memory.db"), func(o *Options) { o.Journal = filepath.Join(t.TempDir(), "waiting.db") })
			must(t, os.Rename(dir, dir+"-away"))
			must(t, record(p, turn("one", "g")))
			waitFor(t, "the journal", p.journal.waits)
			must(t, os.Rename(dir+"-away", dir))
			if wrong := p.Check(); wrong != nil {
				t.Fatal(wrong)
			}
			add(t, p, turn("two", "h"))
			waitFor(t, "the turn", func() bool { return len(heldBy(t, e, "g")) == 1 })
		})
	}
}

// lockedLog is a log buffer for several goroutines.
type lockedLog struct {
	mu sync.Mutex // guards b
	b  strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
