package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
)

const (
	maxProjects     = 10_000
	maxProjectsFile = 8 << 20
	maxTold         = 1024 // directories that are warned about
)

// Projects decides which directories belong to the project that a remote's
// address names. Any archive can claim an address, so that the first directory
// that is seen with one binds it to a commit of its history, and others belong
// to it only if they hold that commit. It is safe for concurrent use.
type Projects struct {
	file string // where that is kept; empty: nowhere
	log  *slog.Logger

	mu     sync.Mutex // guards what follows
	clones []string   // patterns of directories that are believed
	known  map[string]project
	fault  error // why known is not all of them
	told   map[string]bool
}

// project is what a remote's address is bound to.
type project struct {
	Commit string `json:"commit,omitempty"` // of its history; empty: nothing is published yet
	Git    string `json:"git"`              // the git directory that was seen first
	Inode  string `json:"inode,omitempty"`  // which that is
}

// OpenProjects reads what is bound from a file. Where it cannot, nothing counts
// as bound, and every directory is a project of its own.
func OpenProjects(file string, log *slog.Logger) *Projects {
	p := &Projects{file: file, log: log, known: make(map[string]project), told: make(map[string]bool)}
	if file == "" {
		return p
	}
	f, err := os.Open(file) // #nosec G304 -- our own file
	if errors.Is(err, fs.ErrNotExist) {
		return p
	}
	if err == nil {
		defer f.Close()
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(f, maxProjectsFile)); err == nil {
			err = json.Unmarshal(b, &p.known)
		}
	}
	if err != nil {
		p.fault = err
		log.Warn("which repositories belong to which project cannot be read: each directory is a project of its own until that file is mended, or deleted and bound again", "file", file, "error", err)
	}
	return p
}

// SetClones says which directories are believed to be clones of what their
// remotes name: patterns, in which * stands for any text.
func (p *Projects) SetClones(patterns []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clones = patterns
}

// settle decides whether what a checkout says of its remote counts.
func (p *Projects) settle(c checkout) Repo {
	if key := Key(c.Remote); key != "" && !p.owns(key, &c) {
		c.Claimed, c.Remote = c.Remote, ""
	}
	return c.Repo
}

// owns reports whether a checkout belongs to the project with a key. What it
// reads of it it reads unlocked: a file system that hangs delays no other
// checkout.
func (p *Projects) owns(key string, c *checkout) bool {
	info, err := os.Lstat(c.git)
	if err != nil {
		return false
	}
	objects, err := openObjects(c.git)
	if err == nil {
		defer objects.Close()
	}
	here := project{Git: c.git, Inode: inodeOf(info)}
	for range 8 { // others may bind it meanwhile
		was, known, ok := p.find(key)
		switch {
		case !ok:
			return false
		case was.Commit != "" && objects != nil && objects.holds(was.Commit):
			return true
		case known && (was.Git != here.Git || was.Inode != here.Inode):
			if !p.believes(c.Dir, c.Root) {
				p.warn(key, c)
				return false
			}
			if p.believes(was.Git, filepath.Dir(was.Git)) {
				return true
			}
		}
		if objects != nil {
			here.Commit = objects.past(c.published())
		}
		switch bound, err := p.bind(key, was, here); {
		case err != nil:
			p.log.Warn("which project a repository belongs to cannot be kept: its directory is a project of its own", "workspace", key, "error", err)
			return false
		case bound:
			return true
		}
	}
	return false
}

func (p *Projects) find(key string) (was project, known, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known = p.known[key]
	return was, known, p.fault == nil
}

func (p *Projects) believes(dirs ...string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return MatchAny(p.clones, dirs...)
}

// bind binds a key unless it is bound to something else than it was.
func (p *Projects) bind(key string, was, now project) (bound bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, known := p.known[key]
	switch {
	case is != was:
		return false, nil
	case is == now:
		return true, nil
	case !known && len(p.known) >= maxProjects:
		return false, fmt.Errorf("%d projects are bound", maxProjects)
	}
	next := maps.Clone(p.known)
	next[key] = now
	if err := p.save(next); err != nil {
		return false, err
	}
	p.known = next
	return true, nil
}

// save replaces the file. mu is held.
func (p *Projects) save(known map[string]project) error {
	if p.file == "" {
		return nil
	}
	b, err := json.MarshalIndent(known, "", "\t")
	if err != nil {
		return fmt.Errorf("write %s: %w", p.file, err)
	}
	return datadir.WriteFile(p.file, append(b, '\n'))
}

// warn says once of a directory that its remote does not count.
func (p *Projects) warn(key string, c *checkout) {
	p.mu.Lock()
	at := key + "\x00" + c.Root
	again := p.told[at] || len(p.told) >= maxTold
	if !again {
		p.told[at] = true
	}
	p.mu.Unlock()
	if !again {
		p.log.Warn("a directory has the remote of a project, but not its history: its memory is kept apart; if it is yours, run git fetch there (--unshallow in a shallow clone), or name it in workspace.clones",
			"directory", c.Root, "workspace", key)
	}
}
