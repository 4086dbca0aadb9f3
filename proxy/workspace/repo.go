package workspace

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// IgnoreFile turns memory off in the directory that holds it, and below.
const IgnoreFile = ".graphiti-proxy-ignore"

const maxGitFile = 1 << 20 // of a file of git's that is read

// checkout is a directory with what git says about it. All of it may come from
// an archive that somebody else made.
type checkout struct {
	Repo
	git    string // the repository's git directory, without symbolic links; empty: there is none
	remote string // the name of the remote that it came from
	refs   gitRefs
}

// readCheckout reads which repository a directory belongs to, worktrees and
// submodules included, and where that says it came from.
func readCheckout(dir string) (c checkout) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		c.Ignore = err != nil && !isAbsent(err)
		return c
	}
	c.Dir = dir
	if to, err := filepath.EvalSymlinks(dir); err == nil {
		c.Dir = to
	}
	c.Root = c.Dir
	c.Ignore = isIgnored(dir) || isIgnored(c.Dir)
	for at := range upwards(c.Dir) {
		info, err := os.Lstat(filepath.Join(at, ".git"))
		if err != nil {
			continue
		}
		c.Root = at
		git, common, ok := gitDir(at, info)
		// What is ignored is so in its worktrees and submodules, wherever they
		// are, also in one that it does not know.
		inside := string(filepath.Separator) + ".git" + string(filepath.Separator)
		if i := strings.Index(git, inside); i > 0 {
			c.Ignore = c.Ignore || isIgnored(git[:i])
		}
		if ok {
			c.readGit(git, common)
		}
		return c
	}
	return c
}

// isIgnored reports whether the file that turns memory off stands in a
// directory, or above it.
func isIgnored(dir string) bool {
	for at := range upwards(dir) {
		if _, err := os.Lstat(filepath.Join(at, IgnoreFile)); err == nil || !isAbsent(err) {
			return true
		}
	}
	return false
}

// isAbsent reports whether a file is not there or not readable for us. A failing
// file system is neither.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// upwards are a directory and all above it.
func upwards(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(dir) {
			up := filepath.Dir(dir)
			if up == dir {
				return
			}
			dir = up
		}
	}
}

// readGit reads the state of a repository: git holds what is of this checkout,
// common what it shares with the repository's worktrees.
func (c *checkout) readGit(git, common string) {
	c.git = common
	origin := originOf(filepath.Join(common, "config"))
	c.Remote, c.remote = origin.url, origin.name
	c.refs = gitRefs{dir: common}
	head := firstLine(filepath.Join(git, "HEAD"))
	ref, isBranch := strings.CutPrefix(head, "ref: ")
	if !isBranch {
		if isHash(head) {
			c.Commit = head
		}
		return
	}
	if ref == "refs/heads/.invalid" {
		return // references are in tables, which are not read
	}
	c.Branch = strings.TrimPrefix(ref, "refs/heads/")
	c.Commit = c.refs.commit(ref)
}

// gitRefs reads the references of a git directory.
type gitRefs struct {
	dir    string
	packed []byte
	read   bool // packed was
}

// commit is the hash of the commit that a reference names; empty when it is not
// known.
func (r *gitRefs) commit(ref string) string {
	for range 2 { // one may name another
		if !strings.HasPrefix(ref, "refs/") || strings.Contains(ref, "..") {
			return ""
		}
		line := firstLine(filepath.Join(r.dir, filepath.FromSlash(ref)))
		if line == "" {
			if !r.read {
				r.packed, r.read = readFile(filepath.Join(r.dir, "packed-refs")), true
			}
			line = packed(r.packed, ref)
		}
		if isHash(line) {
			return line
		}
		next, ok := strings.CutPrefix(line, "ref: ")
		if !ok {
			return ""
		}
		ref = next
	}
	return ""
}

// published is the newest commit that is known to be in the repository's
// remote; empty when none is. Any branch of the remote's does where none has a
// usual name.
func (c *checkout) published() string {
	at := "refs/remotes/" + c.remote + "/"
	for _, name := range []string{"HEAD", c.Branch, "main", "master"} {
		if name == "" {
			continue
		}
		if hash := c.refs.commit(at + name); hash != "" {
			return hash
		}
	}
	for _, ref := range c.refs.below(at) {
		if hash := c.refs.commit(ref); hash != "" {
			return hash
		}
	}
	return ""
}

// maxRefs bounds the references that are tried one by one.
const maxRefs = 100

// below are references whose names begin with a folder's, which ends with a
// slash.
func (r *gitRefs) below(folder string) (refs []string) {
	if strings.Contains(folder, "..") {
		return nil
	}
	path := filepath.Join(r.dir, filepath.FromSlash(folder))
	if info, err := os.Stat(path); err == nil && info.IsDir() { // an archive may hold a pipe, which blocks
		for _, name := range namesIn(path) {
			refs = append(refs, folder+name)
		}
	}
	for line := range bytes.Lines(r.packed) {
		if _, name, ok := strings.Cut(strings.TrimSpace(string(line)), " "); ok && strings.HasPrefix(name, folder) && len(refs) < 2*maxRefs {
			refs = append(refs, name)
		}
	}
	slices.Sort(refs)
	return refs
}

// isHash reports whether s is the hash of an object of git's.
func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 40 || len(s) == 64)
}

// packed finds a reference among those that git has packed.
func packed(refs []byte, ref string) string {
	for line := range bytes.Lines(refs) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(string(line)), " "); ok && name == ref {
			return hash
		}
	}
	return ""
}

// namesIn are some of the names in a directory.
func namesIn(path string) []string {
	dir, err := os.Open(path) // #nosec G304 -- a folder of git's
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxRefs)
	return names
}

func firstLine(path string) string {
	line, _, _ := strings.Cut(string(readFile(path)), "\n")
	return strings.TrimSpace(line)
}

// readFile reads a small regular file; nothing when it cannot be read.
func readFile(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path) // #nosec G304 -- a file of git's; only an address and a name are taken from it
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(bufio.NewReader(io.LimitReader(f, maxGitFile)))
	if err != nil {
		return nil
	}
	return b
}
