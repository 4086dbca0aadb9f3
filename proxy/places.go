package proxy

import (
	"path/filepath"
	"sync"
	"time"
)

const (
	// placeFresh is how long what was found in a directory counts.
	placeFresh = 5 * time.Minute

	// placeWait is the most that a request waits for a file system.
	placeWait = 50 * time.Millisecond

	// maxPlaces bounds the directories that are remembered.
	maxPlaces = 4096
)

// Repo is the repository that a directory of this machine belongs to.
type Repo struct {
	Root   string // empty: the directory is not there
	Remote string // the address of its origin; empty: it has none
	Branch string
	Commit string
	Ignore bool // it holds a file .graphiti-proxy-ignore
}

// Places finds repositories by directory: each directory is looked at once in
// a while, and no process is started. It is safe for concurrent use.
type Places struct {
	read func(dir string) Repo

	mu    sync.Mutex // guards what follows
	known map[string]*place
}

type place struct {
	found chan struct{} // closed when repo is set
	repo  Repo
	at    time.Time
}

// NewPlaces is ready for use.
func NewPlaces() *Places { return &Places{read: readRepo, known: make(map[string]*place)} }

// Find returns the repository of a directory. A file system that does not
// answer in time is no repository, until it has answered.
func (p *Places) Find(dir string) Repo {
	dir = filepath.Clean(dir)
	p.mu.Lock()
	one := p.known[dir]
	if one == nil || time.Since(one.at) > placeFresh {
		if len(p.known) >= maxPlaces {
			clear(p.known)
		}
		one = &place{found: make(chan struct{}), at: time.Now()}
		p.known[dir] = one
		// Ends when the file system has answered; at most one for a directory.
		go p.look(dir, one)
	}
	p.mu.Unlock()
	select {
	case <-one.found:
		return one.repo
	default:
	}
	t := time.NewTimer(placeWait)
	defer t.Stop()
	select {
	case <-one.found:
		return one.repo
	case <-t.C:
		return Repo{}
	}
}

func (p *Places) look(dir string, one *place) {
	one.repo = p.read(dir)
	close(one.found)
}
