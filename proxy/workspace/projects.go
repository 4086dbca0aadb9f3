package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/djherbis/times"
	"github.com/gofrs/flock"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
)

const (
	maxProjects = 10_000
	maxWarned   = 1024             // directories with a warning
	lockWait    = 10 * time.Second // no request waits for it
	lockRetry   = 10 * time.Millisecond

	// Joins is the remedy for a separate memory. It does not contain the directory's name, which may come from
	// an archive, because a person would paste it into a shell.
	Joins = "if it is yours, run in it: graphiti-proxy workspace join ."
)

// Projects decides which directories belong to the project of a remote's address. An
// archive can name any address, so the project is bound to the first directory with the
// address. Another directory joins it only by workspace join, or by a pattern of
// workspace.clones. A repository without such a remote is bound to the project of its
// path. A directory stays in its project when it is moved. Several goroutines and
// processes may use Projects and its file at the same time.
type Projects struct {
	file     string // contains the projects and their directories; empty if there is no file
	readOnly bool   // no directory is bound
	log      *slog.Logger

	mu     sync.Mutex // guards clones, warned and apart
	clones []string   // patterns of trusted directories
	warned map[string]bool
	apart  map[string]graphiti.Apart
}

// project is the binding of a remote's address, or of a path.
type project struct {
	directory             // the first one
	Joined    []directory `json:"joined,omitempty"` // by workspace join
}

// directory is the git directory of a repository.
type directory struct {
	Git   string `json:"git"`
	Inode string `json:"inode,omitempty"` // device:inode; differs for another directory at the same path
	Birth string `json:"birth,omitempty"` // the time of creation, see birthOf
}

// is reports whether d and other are the same directory. It does not compare the devices,
// because their numbers may change when the machine restarts.
func (d directory) is(other directory) bool {
	return d.Git == other.Git && d.inode() == other.inode()
}

func (d directory) inode() string {
	_, inode, _ := strings.Cut(d.Inode, ":")
	return inode
}

// became reports whether d was moved to the path of other. The inode alone does not prove
// that, because a new directory may reuse the inode of a deleted one.
func (d directory) became(other directory) bool {
	return d.Git != other.Git && d.Birth != "" && d.Birth == other.Birth && d.inode() == other.inode()
}

// directoryAt returns the directory at a path.
func directoryAt(git string) (directory, error) {
	info, err := os.Lstat(git)
	if err != nil {
		return directory{}, err
	}
	return directory{git, inodeOf(info), birthOf(git)}, nil
}

// birthOf returns the time of a file's creation; empty if the file system does not record
// it. An archive or a copy cannot set this time.
func birthOf(path string) string {
	t, err := times.Lstat(path)
	if err != nil || !t.HasBirthTime() {
		return ""
	}
	return fmt.Sprintf("%d.%09d", t.BirthTime().Unix(), t.BirthTime().Nanosecond())
}

// gone reports whether the directory was deleted, moved or replaced by another.
func (d directory) gone() bool {
	now, err := directoryAt(d.Git)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !d.is(now)
}

// OpenProjects returns the projects in a file. While the file cannot be read or written,
// no directory is bound, and every directory is its own project.
func OpenProjects(file string, log *slog.Logger) *Projects {
	return &Projects{file: file, log: log, warned: make(map[string]bool), apart: make(map[string]graphiti.Apart)}
}

// SetClones sets the patterns (workspace.clones) of directories with a trusted remote; *
// matches any text.
func (p *Projects) SetClones(patterns []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clones = patterns
}

// Apart returns the directories with the remote of a project and a memory of their own.
func (p *Projects) Apart() []graphiti.Apart {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.apart), func(a, b graphiti.Apart) int { return strings.Compare(a.Directory, b.Directory) })
}

// settle returns the Repo of a checkout. It decides whether the remote counts, and
// otherwise finds the path that names the project.
func (p *Projects) settle(c checkout) Repo {
	key := Key(c.Remote)
	if key != "" && !p.owns(key, &c) {
		c.Claimed, c.Remote, key = c.Remote, "", ""
	}
	if key == "" && c.git != "" {
		c.Main = p.home(&c)
	}
	return c.Repo
}

// home returns the path that names the project of a repository, if no remote counts: the
// current or the first path of its main checkout.
func (p *Projects) home(c *checkout) string {
	here, err := directoryAt(c.git)
	if err != nil || p.file == "" {
		return c.Main
	}
	known, err := p.load()
	if err != nil {
		return c.Main // owns logs this error
	}
	home, binds := homeOf(known, c.Main, here)
	if !binds || p.readOnly || c.Ignore {
		return home
	}
	_, err = p.change(func(known map[string]project) error {
		if home, binds = homeOf(known, c.Main, here); binds {
			key := graphiti.PathPrefix + home
			return bind(known, key, project{here, known[key].Joined})
		}
		return nil
	})
	if err != nil && p.firstWarning(c.Root, err) {
		p.log.Warn("bind directory to its path failed, a move would separate it from its memory", "directory", c.Root, "file", p.file, "error", err)
	}
	return home
}

// homeOf returns the path that names the project of the git directory here, and whether
// to bind it. main is the main checkout of the repository.
func homeOf(known map[string]project, main string, here directory) (home string, binds bool) {
	one, bound := known[graphiti.PathPrefix+main]
	if bound && one.is(here) {
		return main, false
	}
	for key, other := range known {
		if path, ok := strings.CutPrefix(key, graphiti.PathPrefix); ok && (other.is(here) || other.became(here)) {
			return path, other.gone()
		}
	}
	if !bound || one.gone() {
		return main, true
	}
	return here.Git, false // the directory of this path's project was moved away, and still exists
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
	p.noteApart(graphiti.Apart{Directory: c.Root, Workspace: key, Remedy: Joins}, err == nil && !ours)
	switch {
	case err == nil && ours:
		return true
	case readOnly || !p.firstWarning(c.Root, err):
	case err != nil:
		p.log.Warn("read or store the file of projects failed, each directory is its own project until the file is repaired, or deleted and bound again", "directory", c.Root, "workspace", key, "file", p.file, "error", err)
	case first.gone():
		p.log.Warn("a directory has the remote of a project with a deleted or moved directory, so its memory is separate", "directory", c.Root, "workspace", key, "project", first.Git, "to_do", Joins)
	default:
		p.log.Warn("a directory has the remote of another directory's project, so its memory is separate", "directory", c.Root, "workspace", key, "project", first.Git, "to_do", Joins)
	}
	return false
}

// admits reports whether a checkout belongs to a project (ours), and whether to bind the
// project to it (binds).
func (p *Projects) admits(known map[string]project, key string, here directory, c *checkout) (ours, binds bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch one, bound := known[key]; {
	case !bound:
		return true, true
	case one.is(here):
		return true, false
	case one.became(here):
		return true, one.gone()
	case MatchAny(p.clones, c.Dir, c.Root):
		return true, !MatchAny(p.clones, one.Git, filepath.Dir(one.Git))
	default:
		return slices.ContainsFunc(one.Joined, func(d directory) bool { return d.is(here) || d.became(here) }), false
	}
}

func bind(known map[string]project, key string, to project) error {
	if _, bound := known[key]; !bound && len(known) >= maxProjects {
		return fmt.Errorf("%d projects are bound", maxProjects)
	}
	known[key] = to
	return nil
}

// load reads the file each time, because another process may have changed it.
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

// change calls f to change the projects, writes them and returns them. It locks the file
// for this time.
func (p *Projects) change(f func(known map[string]project) error) (known map[string]project, err error) {
	lock := flock.New(p.file+".lock", flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
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

// noteApart adds a directory to those with a memory of their own, or removes it.
func (p *Projects) noteApart(a graphiti.Apart, apart bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !apart {
		delete(p.apart, a.Directory)
	} else if len(p.apart) < maxWarned && p.apart != nil {
		p.apart[a.Directory] = a
	}
}

// firstWarning notes a warning about a directory, and reports whether it is the first. There are two
// warnings: err is nil for the remote of another directory, and not for an unusable file.
func (p *Projects) firstWarning(dir string, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := fmt.Sprint(err != nil, dir)
	if p.warned[what] || len(p.warned) >= maxWarned {
		return false
	}
	p.warned[what] = true
	return true
}
