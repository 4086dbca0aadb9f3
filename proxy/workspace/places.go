package workspace

import (
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// placeFresh is the time after which the next request waits for a new read of a directory,
	// because the person may create IgnoreFile or run workspace join at any moment.
	placeFresh = time.Second

	// placeWait is the default of Places.Wait, and firstWait the longest time that the first
	// requests in a directory wait.
	placeWait = 50 * time.Millisecond
	firstWait = 400 * time.Millisecond

	// maxPlaces is the maximum number of cached directories.
	maxPlaces = 4096

	// maxLooks is the maximum number of concurrent reads. It is reached only if a file
	// system does not answer.
	maxLooks = 128
)

// Repo is the repository of a directory on this machine.
type Repo struct {
	Dir    string // the directory itself, without symbolic links; empty if it does not exist
	Root   string // the root of the checkout; the directory, if there is no repository
	Main   string // the main checkout, which worktrees share; the git directory of a bare repository
	Remote string // the address of the origin; empty if there is none or it does not count

	// Claimed is the address of an origin that does not count, because its project is
	// bound to another directory (see Projects).
	Claimed string

	Branch string
	Ignore bool // there is a file .graphiti-proxy-ignore in the directory, or above it
}

// Key returns the key of the directory's project; empty if the directory does not exist.
func (r *Repo) Key() string {
	if key := Key(r.Remote); key != "" || r.Main == "" {
		return key
	}
	return graphiti.PathPrefix + r.Main
}

// Keys returns the keys that may name the directory's project: the address, the path and
// the address that does not count.
func (r *Repo) Keys() []string {
	if r.Main == "" {
		return nil
	}
	return []string{Key(r.Remote), graphiti.PathPrefix + r.Main, Key(r.Claimed)}
}

// Places finds the repository of a directory. It reads a directory at most every second, and
// starts no process. It is safe for concurrent use.
type Places struct {
	// Projects decides which remotes are trusted.
	Projects *Projects

	// Read reads one directory. It may block as long as the file system does.
	Read func(dir string) Repo

	// Wait is the longest time that a request waits for a file system. Only the first
	// requests in a directory wait longer.
	Wait time.Duration

	reads *reads[Repo]
}

// NewPlaces returns a Places that is ready for use. It trusts every remote until its
// Projects are set.
func NewPlaces() *Places {
	p := &Places{Projects: &Projects{readOnly: true}, Wait: placeWait}
	p.Read = func(dir string) Repo { return p.Projects.settle(readCheckout(dir)) }
	p.reads = newReads(func(dir string) Repo { return p.Read(dir) }, placeFresh, maxPlaces)
	return p
}

// Find returns the repository of a directory. ok is false if the directory was never read and
// the file system does not answer in time.
func (p *Places) Find(dir string) (repo Repo, ok bool) {
	if repo, ok = p.reads.find(dir, p.Wait); !ok {
		repo, ok = p.reads.find(dir, firstWait)
	}
	return repo, ok
}

// reads caches the results of a function for directories. It is safe for concurrent use.
type reads[T any] struct {
	read  func(dir string) T // may block as long as the file system does
	fresh time.Duration      // how long a result counts
	most  int                // cached directories

	mu    sync.Mutex // guards known, its elements, and looks
	known map[string]*place[T]
	looks int // number of concurrent reads
}

// place is the cached result for a directory.
type place[T any] struct {
	got   T
	found bool          // it was read
	look  chan struct{} // closed at the end of the current read; nil if there is none
	began time.Time     // the beginning of the last read
	fault any           // the panic of the last read; nil if there was none
}

func newReads[T any](read func(dir string) T, fresh time.Duration, most int) *reads[T] {
	return &reads[T]{read: read, fresh: fresh, most: most, known: make(map[string]*place[T])}
}

// find returns the result for a directory, the old one if the file system does not answer in the
// given time. ok is false if there is none.
func (p *reads[T]) find(dir string, most time.Duration) (got T, ok bool) {
	dir = filepath.Clean(dir)
	p.mu.Lock()
	one := p.place(dir)
	if old := !one.found || time.Since(one.began) > p.fresh; old && one.look == nil && p.looks < maxLooks {
		p.looks++
		one.look, one.began = make(chan struct{}), time.Now()
		go p.lookAt(dir, one) // ends when the file system has answered; one for a directory
	}
	look, wait := one.look, most-time.Since(one.began)
	p.mu.Unlock()
	if look != nil && wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-look:
		case <-t.C:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.fault != nil {
		panic(one.fault) // the handler of the request recovers from it and logs it
	}
	return one.got, one.found
}

// place returns the place of a directory. If there are too many, it drops the others,
// except during their read, so that two reads of a directory never run at the same time.
// The caller holds mu.
func (p *reads[T]) place(dir string) *place[T] {
	one := p.known[dir]
	if one != nil {
		return one
	}
	if len(p.known) >= p.most {
		maps.DeleteFunc(p.known, func(_ string, other *place[T]) bool { return other.look == nil })
	}
	one = &place[T]{}
	p.known[dir] = one
	return one
}

func (p *reads[T]) lookAt(dir string, one *place[T]) {
	var got T
	defer func() {
		fault := recover()
		p.mu.Lock()
		defer p.mu.Unlock()
		one.got, one.found, one.fault = got, fault == nil, fault
		close(one.look)
		one.look = nil
		p.looks--
	}()
	got = p.read(dir)
}
