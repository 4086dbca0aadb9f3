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

	// joins is the remedy. It does not quote the directory's name: whoever made
	// an archive chose that, and a person would paste it into a shell.
	joins = "if it is yours, run in it: graphiti-proxy workspace join ."
)

// Projects decides which directories belong to the project that a remote's address
// names. Any archive can name an address, so the first directory that is seen with
// one is bound to the project. Another belongs to it only if the person says so: by
// workspace join, or by a pattern of workspace.clones. Several goroutines and
// processes may use it and its file at the same time.
type Projects struct {
	file     string // holds the projects and their directories; empty: none does
	readOnly bool   // no directory is bound
	log      *slog.Logger

	mu     sync.Mutex // guards what follows
	clones []string   // patterns of directories that are believed
	warned map[string]bool
}

// project is what a remote's address is bound to.
type project struct {
	directory             // the first that was seen
	Joined    []directory `json:"joined,omitempty"` // by workspace join
}

// directory is the git directory of a repository.
type directory struct {
	Git   string `json:"git"`
	Inode string `json:"inode,omitempty"` // device:inode, which another directory at the same path does not have
}

// is reports whether two are the same directory. It does not compare the devices:
// their numbers may change when the machine restarts.
func (d directory) is(other directory) bool {
	_, inode, _ := strings.Cut(d.Inode, ":")
	_, others, _ := strings.Cut(other.Inode, ":")
	return d.Git == other.Git && inode == others
}

// directoryAt returns the directory at a path.
func directoryAt(git string) (directory, error) {
	info, err := os.Lstat(git)
	if err != nil {
		return directory{}, err
	}
	return directory{git, inodeOf(info)}, nil
}

// gone reports whether the directory was deleted, moved or replaced by another.
func (d directory) gone() bool {
	now, err := directoryAt(d.Git)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !d.is(now)
}

// OpenProjects returns the projects in a file. While the file cannot be read or
// written, nothing is bound, and every directory is a project of its own.
func OpenProjects(file string, log *slog.Logger) *Projects {
	return &Projects{file: file, log: log, warned: make(map[string]bool)}
}

// SetClones sets the patterns (workspace.clones) of directories whose remotes are
// believed; * stands for any text.
func (p *Projects) SetClones(patterns []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clones = patterns
}

// settle decides whether the remote of a checkout counts, and returns its Repo.
func (p *Projects) settle(c checkout) Repo {
	if key := Key(c.Remote); key != "" && !p.owns(key, &c) {
		c.Claimed, c.Remote = c.Remote, ""
	}
	return c.Repo
}

// owns reports whether a checkout belongs to the project with a key, and binds the
// project to it if it is the first. An ignored checkout is not bound: it would keep
// others out of the project and have no memory itself.
func (p *Projects) owns(key string, c *checkout) bool {
	here, err := directoryAt(c.git)
	if err != nil {
		return false
	}
	known, err := p.load()
	ours, binds := p.admits(known, key, here, c)
	readOnly := p.readOnly || c.Ignore
	if binds && err == nil && !readOnly {
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
	case readOnly || !p.isNew(c.Root, err):
	case err != nil:
		p.log.Warn("which repositories belong to which project cannot be read or kept: each directory is a project of its own until that file is mended, or deleted and bound again", "directory", c.Root, "workspace", key, "file", p.file, "error", err)
	case first.gone():
		p.log.Warn("a directory has the remote of a project whose own directory was deleted or moved: its memory is kept apart", "directory", c.Root, "workspace", key, "project", first.Git, "to_do", joins)
	default:
		p.log.Warn("a directory has the remote of a project that another one was seen with first: its memory is kept apart", "directory", c.Root, "workspace", key, "project", first.Git, "to_do", joins)
	}
	return false
}

// admits reports whether a checkout belongs to a project (ours), and whether the
// project is to be bound to it (binds).
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

// load reads the file, which another process may have changed.
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

// change calls f to change the projects, writes them and returns them. It holds a
// lock on the file meanwhile.
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

// isNew reports whether this warning about a directory is the first: err is nil for
// a remote that is another directory's, and not for a file that cannot be used.
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
