package workspace

import (
	"path/filepath"
	"sync"
	"time"
)

const (
	// placeFresh is how long what was found in a directory counts.
	placeFresh = 5 * time.Minute

	// claimFresh is how long a claim that does not count does not: its person may
	// say meanwhile that the directory is theirs.
	claimFresh = time.Second

	// placeWait is the most that a request waits for a file system, unless
	// Places.Wait says otherwise.
	placeWait = 50 * time.Millisecond

	// maxPlaces bounds the directories that are remembered.
	maxPlaces = 4096

	// maxLooks bounds those that are looked at in the same moment: more come
	// from a file system that does not answer.
	maxLooks = 128
)

// Repo is the repository that a directory of this machine belongs to.
type Repo struct {
	Dir    string // the directory itself, without symbolic links; empty: it is not there
	Root   string // of the repository; without one the directory
	Remote string // the address of its origin; empty: it has none that counts

	// Claimed is the address that it names and that does not count: another
	// directory was seen with it first (projects.go).
	Claimed string

	Branch string
	Commit string
	Ignore bool // a file .graphiti-proxy-ignore stands in it, or above it
}

// Places finds repositories by directory: each directory is looked at once in
// a while, and no process is started. It is safe for concurrent use.
type Places struct {
	// Projects says which remotes are believed.
	Projects *Projects

	// Read reads one directory, which may take as long as its file system.
	Read func(dir string) Repo

	// Wait is the most that a request waits for a file system.
	Wait time.Duration

	mu    sync.Mutex // guards what follows, and every place
	known map[string]*place
	looks int // under way
}

// place is what is known of a directory. While it is looked at again, what was
// found before counts.
type place struct {
	repo  Repo
	found time.Time     // when repo was; zero: never
	look  chan struct{} // closed when the look that is under way ends; nil: none is
	began time.Time     // that look
	fault any           // what the last look panicked with
}

// NewPlaces is ready for use. It believes every remote: set its Projects before.
func NewPlaces() *Places {
	p := &Places{Projects: &Projects{asks: true}, Wait: placeWait, known: make(map[string]*place)}
	p.Read = func(dir string) Repo { return p.Projects.settle(readCheckout(dir)) }
	return p
}

// Find returns the repository of a directory. ok is false while nothing is
// known of it, because its file system has not answered in time.
func (p *Places) Find(dir string) (repo Repo, ok bool) {
	dir = filepath.Clean(dir)
	p.mu.Lock()
	one := p.place(dir)
	fresh := placeFresh
	if one.repo.Claimed != "" {
		fresh = claimFresh
	}
	if !one.found.IsZero() && time.Since(one.found) <= fresh {
		defer p.mu.Unlock()
		return one.repo, true
	}
	if one.look == nil && p.looks < maxLooks {
		p.looks++
		one.look, one.began = make(chan struct{}), time.Now()
		// Ends when the file system has answered; one for a directory.
		go p.lookAt(dir, one)
	}
	look, wait := one.look, p.Wait-time.Since(one.began)
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
		panic(one.fault) // the request's, which says so and goes on
	}
	return one.repo, !one.found.IsZero()
}

// place is that of a directory. Those that are being looked at are not
// forgotten, so that no second look begins. mu is held.
func (p *Places) place(dir string) *place {
	one := p.known[dir]
	if one != nil {
		return one
	}
	if len(p.known) >= maxPlaces {
		for d, other := range p.known {
			if other.look == nil {
				delete(p.known, d)
			}
		}
	}
	one = &place{}
	p.known[dir] = one
	return one
}

func (p *Places) lookAt(dir string, one *place) {
	var repo Repo
	defer func() {
		fault := recover()
		p.mu.Lock()
		defer p.mu.Unlock()
		if one.fault = fault; fault == nil {
			one.repo, one.found = repo, time.Now()
		}
		close(one.look)
		one.look = nil
		p.looks--
	}()
	repo = p.Read(dir)
}
