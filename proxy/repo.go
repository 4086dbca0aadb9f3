package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// ignoreFile turns memory off in the directory that holds it, and below.
const ignoreFile = ".graphiti-proxy-ignore"

const (
	maxGitFile = 1 << 20 // of a file of git's that is read
	maxAbove   = 64      // directories above the one that is asked for
)

// readRepo reads what is known of a directory: which repository it belongs to,
// worktrees and submodules included, and where that came from.
func readRepo(dir string) (r Repo) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Repo{Ignore: err != nil && !isAbsent(err)}
	}
	r.Dir = dir
	if to, err := filepath.EvalSymlinks(dir); err == nil {
		r.Dir = to
	}
	r.Root = r.Dir
	r.Ignore = isIgnored(dir) || isIgnored(r.Dir)
	for at := range upwards(r.Dir) {
		git, ok := gitDir(filepath.Join(at, ".git"))
		if !ok {
			continue
		}
		r.Root = at
		r.readGit(git)
		// What is ignored is so in its worktrees and submodules, wherever they
		// are: their git directory is in that of the whole.
		inside := string(filepath.Separator) + ".git" + string(filepath.Separator)
		if i := strings.Index(git, inside); i > 0 {
			r.Ignore = r.Ignore || isIgnored(git[:i])
		}
		return r
	}
	return r
}

// isIgnored reports whether the file that turns memory off stands in a
// directory, or above it.
func isIgnored(dir string) bool {
	for at := range upwards(dir) {
		if _, err := os.Lstat(filepath.Join(at, ignoreFile)); err == nil || !isAbsent(err) {
			return true
		}
	}
	return false
}

// isAbsent tells what is not there, or not for us, from a file system in
// trouble, of which the better is not assumed.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// upwards are a directory and those above it.
func upwards(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range maxAbove {
			if !yield(dir) {
				return
			}
			up := filepath.Dir(dir)
			if up == dir {
				return
			}
			dir = up
		}
	}
}

// gitDir follows a file .git to the directory that it names: that of a
// worktree or of a submodule.
func gitDir(path string) (dir string, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return path, true
	}
	to, ok := strings.CutPrefix(firstLine(path), "gitdir: ")
	if !ok {
		return "", false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return filepath.Clean(to), true
}

func (r *Repo) readGit(git string) {
	common := git
	if c := firstLine(filepath.Join(git, "commondir")); c != "" { // a worktree
		if common = c; !filepath.IsAbs(c) {
			common = filepath.Join(git, c)
		}
	}
	r.Remote = originOf(filepath.Join(common, "config"))
	head := firstLine(filepath.Join(git, "HEAD"))
	ref, branch := strings.CutPrefix(head, "ref: ")
	if !branch {
		r.Commit = head
		return
	}
	r.Branch = strings.TrimPrefix(ref, "refs/heads/")
	if strings.Contains(ref, "..") {
		return
	}
	if r.Commit = firstLine(filepath.Join(common, filepath.FromSlash(ref))); r.Commit == "" {
		r.Commit = packed(readFile(filepath.Join(common, "packed-refs")), ref)
	}
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
	f, err := os.Open(path) // #nosec G304 -- a file of git's, of which an address and a name are taken
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
