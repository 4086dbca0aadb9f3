package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
)

const (
	maxProjects = 10_000
	maxWarned   = 1024 // directories that are warned about
	lockWait    = time.Second

	// joins names no directory: a name is not to be pasted into a shell.
	joins = "if it is yours, run in it: graphiti-proxy workspace join ."
)

// Projects decides which directories belong to the project that a remote's
// address names. Any archive can claim an address, so that the first directory
// that is seen with one has the project, and others belong to it when their
// person says so. It is safe for concurrent use, and so is its file for several
// processes.
type Projects struct {
	file string // where that is kept; empty: nowhere
	asks bool   // nothing is bound
	log  *slog.Logger

	mu     sync.Mutex // guards what follows
	clones []string   // patterns of directories that are believed
	warned map[string]bool
}

// project is what a remote's address is bound to.
type project struct {
	directory             // that was seen first
	Joined    []directory `json:"joined,omitempty"` // as their person said
}

// directory is the git directory of a repository.
type directory struct {
	Git   string `json:"git"`
	Inode string `json:"inode,omitempty"` // which one that is, of those that stand at its path in turn
}

// is reports whether both are the same. The number of a device, which stands
// before that of the inode, may be another one after a restart of the machine.
func (d directory) is(other directory) bool {
	_, inode, _ := strings.Cut(d.Inode, ":")
	_, others, _ := strings.Cut(other.Inode, ":")
	return d.Git == other.Git && inode == others
}

// directoryAt is the one that stands at a path.
func directoryAt(git string) (directory, error) {
	info, err := os.Lstat(git)
	if err != nil {
		return directory{}, err
	}
	return directory{git, inodeOf(info)}, nil
}

// gone reports whether it was deleted or moved, or another one stands at its
// path.
func (d directory) gone() bool {
	now, err := directoryAt(d.Git)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !d.is(now)
}

// OpenProjects keeps in a file what is bound. While that cannot be read or
// written, nothing is, and every directory is a project of its own.
func OpenProjects(file string, log *slog.Logger) *Projects {
	return &Projects{file: file, log: log, warned: make(map[string]bool)}
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

// owns reports whether a checkout belongs to the project with a key, and binds
// that where it is the first. One without memory takes no project from others.
func (p *Projects) owns(key string, c *checkout) bool {
	here, err := directoryAt(c.git)
	if err != nil {
		return false
	}
	known, err := p.load()
	ours, binds := p.admits(known, key, here, c)
	asks := p.asks || c.Ignore
	if binds && err == nil && !asks {
		known, err = p.change(func(known map[string]project) error {
			if ours, binds = p.admits(known, key, here, c); binds {
				return bind(known, key, project{here, known[key].Joined})
			}
			return nil
		})
	}
	first := known[key].directory
	switch {
	case err == nil && ours:
		return true
	case asks || !p.isNew(c.Root, err):
	case err != nil:
		p.log.Warn("which repositories belong to which project cannot be read or kept: each directory is a project of its own until that file is mended, or deleted and bound again", "directory", c.Root, "workspace", key, "file", p.file, "error", err)
	case first.gone():
		p.log.Warn("a directory has the remote of a project whose own directory was deleted or moved: its memory is kept apart", "directory", c.Root, "workspace", key, "project", first.Git, "to_do", joins)
	default:
		p.log.Warn("a directory has the remote of a project that another one was seen with first: its memory is kept apart", "directory", c.Root, "workspace", key, "project", first.Git, "to_do", joins)
	}
	return false
}

// admits reports whether a checkout belongs to a project, and whether the project
// is bound to it from now on.
func (p *Projects) admits(known map[string]project, key string, here directory, c *checkout) (ours, binds bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch one, bound := known[key]; {
	case !bound:
		return true, true
	case one.is(here):
		return true, false
	case MatchAny(p.clones, c.Dir, c.Root):
		return true, !MatchAny(p.clones, one.Git, filepath.Dir(one.Git))
	default:
		return slices.ContainsFunc(one.Joined, here.is), false
	}
}

func bind(known map[string]project, key string, to project) error {
	if _, bound := known[key]; !bound && len(known) >= maxProjects {
		return fmt.Errorf("%d projects are bound", maxProjects)
	}
	known[key] = to
	return nil
}

// load reads what is bound: another process may have changed that.
func (p *Projects) load() (known map[string]project, err error) {
	known = make(map[string]project)
	b, err := os.ReadFile(p.file)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &known)
	}
	return known, err
}

// change has f change what is bound, while nobody else does, and returns it.
func (p *Projects) change(f func(known map[string]project) error) (known map[string]project, err error) {
	lock := flock.New(p.file+".lock", flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, lockWait/100); err != nil {
		return nil, fmt.Errorf("lock %s: %w", p.file, err)
	}
	defer func() { _ = lock.Unlock() }()
	if known, err = p.load(); err != nil {
		return nil, err
	}
	if err = f(known); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(known, "", "\t")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", p.file, err)
	}
	return known, datadir.WriteFile(p.file, append(b, '\n'))
}

// isNew reports whether a directory is warned about for the first time: that it
// makes a claim, or that an error keeps its project from it.
func (p *Projects) isNew(dir string, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := fmt.Sprint(err != nil, dir)
	if p.warned[what] || len(p.warned) >= maxWarned {
		return false
	}
	p.warned[what] = true
	return true
}
