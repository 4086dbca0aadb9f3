package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
)

// TestMain fixes the local time zone: the recorded texts state days of UTC.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		postgrestest.Stop()
		os.Exit(postgrestest.Again(code))
	}))
}

// file is a fake store of messages.
type file struct {
	mu     sync.Mutex
	groups map[string][]indexedMessage
	reads  int
	during func(group string) // called while a group is read, after the last message
	err    error
}

func (f *file) read(ctx context.Context, group string, behind int64, each func(indexedMessage)) (int64, error) {
	f.mu.Lock()
	f.reads++
	all, err, during := f.groups[group], f.err, f.during
	f.mu.Unlock()
	for _, m := range all {
		if m.Place > behind {
			each(m)
		}
	}
	if during != nil {
		during(group)
	}
	if err != nil || ctx.Err() != nil {
		return 0, errors.Join(err, ctx.Err())
	}
	if len(all) == 0 {
		return 0, nil
	}
	return 7, nil
}

// write adds messages and reports them to the index, as a commit does.
func (f *file) write(g *indexes, group string, messages ...indexedMessage) {
	f.mu.Lock()
	if f.groups == nil {
		f.groups = make(map[string][]indexedMessage)
	}
	f.groups[group] = append(f.groups[group], messages...)
	f.mu.Unlock()
	g.Committed(group, 7, messages)
}

func newGroups(t *testing.T, f *file, limit int) *indexes {
	g := newIndexes(f.read, limit)
	t.Cleanup(g.Close)
	return g
}

func find(t *testing.T, g *indexes, group, word string) []int64 {
	t.Helper()
	i, err := g.Get(t.Context(), group)
	must(t, err)
	places, _ := i.find(words.Term(word), 100)
	return places
}

func TestCommittedMessagesAreFound(t *testing.T) {
	f := &file{}
	g := newGroups(t, f, 1<<20)
	if i, err := g.Get(t.Context(), "g"); err != nil || i.groupNumber() != 0 {
		t.Fatalf("an empty group has the number %v, %v; want 0", i.groupNumber(), err)
	}
	f.write(g, "g", indexedMessage{Place: 1, Text: "oboe"})
	f.write(g, "h", indexedMessage{Place: 1, Text: "oboe"})
	f.write(g, "g", indexedMessage{Place: 9, Text: "an oboe"}, indexedMessage{Place: 10, Text: "a lute"})
	if got := fmt.Sprint(find(t, g, "g", "oboes"), find(t, g, "h", "oboe"), find(t, g, "g", "lute")); got != "[1 9] [1] [10]" {
		t.Errorf("found %s, want [1 9] [1] [10]", got)
	}
	if i, err := g.Get(t.Context(), "g"); err != nil || i.groupNumber() != 7 || i.messageCount() != 3 {
		t.Errorf("number %d, %d messages", i.groupNumber(), i.messageCount())
	}
	if f.reads != 3 { // the absent group, the same group with a message, and the other
		t.Errorf("the file was read %d times, want 3", f.reads)
	}
}

// TestCommitsDuringABuild checks that a message committed during a build is in the index
// exactly once, whether the build has read it or not.
func TestCommitsDuringABuild(t *testing.T) {
	f := &file{}
	g := newGroups(t, f, 1<<20)
	f.write(g, "g", indexedMessage{Place: 1, Text: "oboe"})
	once := sync.Once{}
	f.during = func(string) {
		once.Do(func() { f.write(g, "g", indexedMessage{Place: 2, Text: "oboe"}) })
	}
	if got := fmt.Sprint(find(t, g, "g", "oboe")); got != "[1 2]" {
		t.Errorf("found %s, want [1 2]", got)
	}
	g.Committed("g", 7, f.groups["g"]) // a commit reported after the build has read it
	if i, err := g.Get(t.Context(), "g"); err != nil || i.messageCount() != 2 {
		t.Errorf("%d messages", i.messageCount())
	}
}

// TestDeletedMessagesAreNotFound checks that messages deleted during a build or after it are
// not found.
func TestDeletedMessagesAreNotFound(t *testing.T) {
	f := &file{}
	g := newGroups(t, f, 1<<20)
	forget := func(string) {
		f.mu.Lock()
		f.groups["g"], f.during = []indexedMessage{{Place: 2, Text: "lute"}}, nil
		f.mu.Unlock()
		g.Deleted("g")
	}
	for _, during := range []bool{false, true} {
		f.groups = nil
		f.write(g, "g", indexedMessage{Place: 1, Text: "oboe"}, indexedMessage{Place: 2, Text: "lute"})
		if during {
			f.during = forget
			g.Deleted("g")
		}
		find(t, g, "g", "oboe")
		if !during {
			forget("g")
		}
		if got := fmt.Sprint(find(t, g, "g", "oboe"), find(t, g, "g", "lute")); got != "[] [2]" {
			t.Errorf("during a build %t: %s", during, got)
		}
	}
}

// TestABuildIsWaitedForAsLongAsThereIsTime checks that Get waits for a build until its
// deadline, and that the build continues after that.
// TestDeletionsDuringABuildNeedOneMore checks that several deletions during a build make one more
// build, not one each.
func TestDeletionsDuringABuildNeedOneMore(t *testing.T) {
	f := &file{}
	g := newGroups(t, f, 1<<20)
	f.write(g, "g", indexedMessage{Place: 1, Text: "oboe"}, indexedMessage{Place: 2, Text: "lute"})
	var once sync.Once
	f.during = func(string) {
		once.Do(func() {
			f.mu.Lock()
			f.groups["g"] = f.groups["g"][1:]
			f.mu.Unlock()
			for range 5 {
				g.Deleted("g")
			}
		})
	}
	if got := fmt.Sprint(find(t, g, "g", "oboe"), find(t, g, "g", "lute")); got != "[] [2]" {
		t.Errorf("found %s, want [] [2]", got)
	}
	if f.reads != 2 {
		t.Errorf("the file was read %d times, want 2", f.reads)
	}
}

func TestABuildIsWaitedForAsLongAsThereIsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &file{}
		g := newIndexes(f.read, 1<<20)
		defer g.Close()
		f.write(g, "g", indexedMessage{Place: 1, Text: "oboe"})
		go_ := make(chan struct{})
		f.during = func(string) { <-go_ }
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := g.Get(ctx, "g"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 400*time.Millisecond || built(g, "g") {
			t.Errorf("%v after %s, built: %t", err, time.Since(begin), built(g, "g"))
		}
		close(go_)
		if got := fmt.Sprint(find(t, g, "g", "oboe")); got != "[1]" || f.reads != 1 || !built(g, "g") || built(g, "h") || empty(g, "g") {
			t.Errorf("%s, read %d times", got, f.reads)
		}
	})
}

// TestAFaultOfTheFile checks that Get returns an error if the file cannot be read or
// reading it panics, and succeeds later.
func TestAFaultOfTheFile(t *testing.T) {
	f := &file{err: errors.New("torn")}
	g := newGroups(t, f, 1<<20)
	for range 2 {
		if _, err := g.Get(t.Context(), "g"); !errors.Is(err, f.err) {
			t.Fatal(err)
		}
	}
	f.err, f.during = nil, func(string) { panic("a mistake") }
	if _, err := g.Get(t.Context(), "g"); err == nil {
		t.Fatal("a mistake is not told")
	}
	f.during = nil
	f.write(g, "g", indexedMessage{Place: 1, Text: "oboe"})
	if got := fmt.Sprint(find(t, g, "g", "oboe")); got != "[1]" {
		t.Errorf("found %s, want [1]", got)
	}
}

// TestIndexesAreBounded checks that the least recently used index is dropped first, and
// that a single large index drops its older part.
func TestIndexesAreBounded(t *testing.T) {
	const limit = 150 << 10
	f := &file{}
	g := newGroups(t, f, limit)
	text := zipf()
	for i := range 20 {
		name := fmt.Sprint(i)
		for place := range int64(30) {
			f.write(g, name, indexedMessage{Place: place + 1, Text: text(20)})
		}
		find(t, g, "0", "word1")
		find(t, g, name, "word1")
		if g.bytes > limit {
			t.Fatalf("%d bytes are held", g.bytes)
		}
	}
	if g.lru.Len() < 2 || !g.lru.Contains("0") || !g.lru.Contains("19") || g.lru.Contains("1") {
		t.Errorf("%v are held", g.lru.Keys())
	}
	for place := range int64(4000) {
		f.write(g, "0", indexedMessage{Place: place + 31, Text: fmt.Sprintf("w%d common", place)})
	}
	if g.bytes > limit {
		t.Errorf("%d bytes are held", g.bytes)
	}
	g.Deleted("0")
	i, err := g.Get(t.Context(), "0")
	must(t, err)
	if places, n := i.find("w3999", 10); n != 1 || places[0] != 4030 || g.bytes > limit {
		t.Errorf("the newest message is at %v; %d bytes are held", places, g.bytes)
	}
}

// TestWarm checks that Warm builds as many indexes as fit into its share of the limit.
func TestWarm(t *testing.T) {
	f := &file{}
	g := newIndexes(f.read, 40<<10)
	text := zipf()
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint(i))
		for place := range int64(10) {
			f.write(g, names[i], indexedMessage{Place: place + 1, Text: text(20)})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		g := newIndexes(f.read, 80<<10)
		g.Warm(names, func(context.Context) {})
		synctest.Wait()
		if n := g.lru.Len(); n == 0 || n == len(names) || !g.lru.Contains("0") || float64(g.bytes) < warmPart*float64(g.limit) {
			t.Errorf("%v are held", g.lru.Keys())
		}
		g.Close()
		if _, err := g.Get(t.Context(), "19"); !errors.Is(err, errClosed) {
			t.Error(err)
		}
	})
	g.Close()
}

// TestAbsentGroupsNeedNoIndex checks that groups without messages need no index, because
// each conversation reads a new group of its own.
func TestAbsentGroupsNeedNoIndex(t *testing.T) {
	f := &file{}
	g := newGroups(t, f, 1<<20)
	for i := range maxAbsent + 10 {
		name := fmt.Sprint("g", i)
		group, err := g.Get(t.Context(), name)
		if isBuilt, empty := g.Built(name); err != nil || group.groupNumber() != 0 || !isBuilt || !empty {
			t.Fatalf("group %s: number %d, built %t, empty %t, error %v; want 0, true, true, none", name, group.groupNumber(), isBuilt, empty, err)
		}
	}
	if n := len(g.absent); g.lru.Len() != 0 || g.bytes != 0 || n == 0 || n > maxAbsent {
		t.Errorf("%d indexes of %d bytes for absent groups, %d noted as absent; want none, and 1 to %d", g.lru.Len(), g.bytes, n, maxAbsent)
	}
	reads := f.reads
	if _, err := g.Get(t.Context(), fmt.Sprint("g", maxAbsent+9)); err != nil || f.reads != reads {
		t.Errorf("an absent group: %d more reads of the file, error %v; want 0, none", f.reads-reads, err)
	}
	f.write(g, fmt.Sprint("g", maxAbsent+9), indexedMessage{Place: 1, Text: "oboe"})
	if got := fmt.Sprint(find(t, g, fmt.Sprint("g", maxAbsent+9), "oboe")); got != "[1]" {
		t.Errorf("after its first message, an absent group has %s, want [1]", got)
	}
}

// Built reports whether the index of a group is built, and whether the group is known to have no
// messages.
func (g *indexes) Built(name string) (built, empty bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, absent := g.absent[name]; absent {
		return true, true
	}
	e, ok := g.lru.Peek(name)
	built = ok && e.whole
	return built, built && e.group.groupNumber() == 0
}

// built reports whether the index of a group is built.
func built(g *indexes, name string) bool {
	isBuilt, _ := g.Built(name)
	return isBuilt
}

// empty reports whether a group is known to have no messages.
func empty(g *indexes, name string) bool {
	_, isEmpty := g.Built(name)
	return isEmpty
}
