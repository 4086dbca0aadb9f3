package workspace

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// placeFresh is how long a Repo counts before its directory is read again.
	placeFresh = 5 * time.Minute

	// claimFresh is placeFresh for a Repo with a Claimed address: the person may
	// run workspace join at any moment.
	claimFresh = time.Second

	// placeWait is the most that a request waits for a file system, unless
	// Places.Wait says otherwise.
	placeWait = 50 * time.Millisecond

	// patience is the most that a finished turn waits for a file system.
	patience = 5 * time.Second

	// maxPlaces bounds the directories that are remembered.
	maxPlaces = 4096

	// maxLooks bounds the reads under way. There are so many only if a file
	// system does not answer.
	maxLooks = 128
)

// Repo is the repository that a directory of this machine belongs to.
type Repo struct {
	Dir    string // the directory itself, without symbolic links; empty: it does not exist
	Root   string // of the repository; without a repository, the directory
	Main   string // of the repository's main checkout, which its worktrees share; of a bare one, its git directory
	Remote string // the address of its origin; empty: it has none that counts

	// Claimed is the address of an origin that does not count, because another
	// directory was seen with it first (see Projects).
	Claimed string

	Branch string
	Commit string
	Ignore bool // a file .graphiti-proxy-ignore is in it, or above it
}

// Key returns the key of the project that a directory belongs to; empty if it does
// not exist.
func (r *Repo) Key() string {
	if key := Key(r.Remote); key != "" || r.Main == "" {
		return key
	}
	return graphiti.PathPrefix + r.Main
}

// Places finds the repository of a directory. It reads each directory every few
// minutes and starts no process. It is safe for concurrent use.
type Places struct {
	// Projects decides which remotes are believed.
	Projects *Projects

	// Read reads one directory. It may take as long as the file system does.
	Read func(dir string) Repo

	// Wait is the most that a request waits for a file system.
	Wait time.Duration

	mu    sync.Mutex // guards what follows, and every place
	known map[string]*place
	looks int // under way
}

// place is what is known of a directory. While the directory is read again, the
// last Repo counts.
type place struct {
	repo  Repo
	found time.Time     // when repo was read; zero: never
	look  chan struct{} // closed when the read under way ends; nil: there is none
	began time.Time     // when that read began
	fault any           // the panic of the last read; nil: none
}

// NewPlaces returns a Places that is ready for use. It believes every remote until
// its Projects are set.
func NewPlaces() *Places {
	p := &Places{Projects: &Projects{readOnly: true}, Wait: placeWait, known: make(map[string]*place)}
	p.Read = func(dir string) Repo { return p.Projects.settle(readCheckout(dir)) }
	return p
}

// Find returns the repository of a directory. It waits up to Wait for the file
// system. ok is false if the directory was never read and the file system has not
// answered by then.
func (p *Places) Find(dir string) (repo Repo, ok bool) { return p.find(dir, p.Wait) }

// Await is Find for what no request waits for.
func (p *Places) Await(dir string) (repo Repo, ok bool) { return p.find(dir, patience) }

func (p *Places) find(dir string, most time.Duration) (repo Repo, ok bool) {
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
	return one.repo, !one.found.IsZero()
}

// place returns the place of a directory. When there are maxPlaces, it drops those
// that are not being read: no second read of a directory begins beside a first.
// mu is held.
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
