package proxy

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ignoreFile turns memory off in the repository, or directory, that holds it.
const ignoreFile = ".graphiti-proxy-ignore"

const (
	maxGitFile = 1 << 20 // of a file of git's that is read
	maxAbove   = 64      // directories above the one that is asked for
)

// readRepo reads what is known of a directory: which repository it belongs to,
// worktrees and submodules included, and where that came from.
func readRepo(dir string) (r Repo) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Repo{}
	}
	r.Root = dir
	for at, n := dir, 0; n < maxAbove; n++ {
		if _, err := os.Lstat(filepath.Join(at, ignoreFile)); err == nil {
			r.Ignore = true
		}
		if git, ok := gitDir(filepath.Join(at, ".git")); ok {
			r.Root = at
			r.readGit(git)
			return r
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at = up
	}
	return r
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
