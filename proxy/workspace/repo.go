package workspace

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// IgnoreFile is the name of a file that turns memory off in its directory, and below.
const IgnoreFile = ".graphiti-proxy-ignore"

const maxGitFile = 1 << 20 // bytes read from one of git's files

// checkout is a directory with the content of git's files. It is not trustworthy, because
// it may come from an archive.
type checkout struct {
	Repo
	git string // the repository's git directory, without symbolic links; empty if there is none
}

// readCheckout reads the repository of a directory, also through a worktree or a
// submodule, and the repository's origin.
func readCheckout(dir string) (c checkout) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		c.Ignore = err != nil && !isAbsent(err)
		return c
	}
	c.Dir = dir
	if to, err := filepath.EvalSymlinks(dir); err == nil {
		c.Dir = to
	}
	c.Root, c.Main = c.Dir, c.Dir
	c.Ignore = isIgnored(dir) || isIgnored(c.Dir)
	for at := range upwards(c.Dir) {
		info, err := os.Lstat(filepath.Join(at, ".git"))
		if err != nil {
			continue
		}
		c.Root, c.Main = at, at
		git, common, ok := gitDir(at, info)
		// The worktrees and submodules of an ignored repository are ignored too, wherever
		// they are, even if the repository does not list them.
		inside := string(filepath.Separator) + ".git" + string(filepath.Separator)
		if i := strings.Index(git, inside); i > 0 {
			c.Ignore = c.Ignore || isIgnored(git[:i])
		}
		if ok {
			c.readGit(git, common)
			c.Main = mainOf(at, common)
			c.Ignore = c.Ignore || isIgnored(c.Main)
		}
		return c
	}
	return c
}

// isIgnored reports whether IgnoreFile is in a directory, or above it.
func isIgnored(dir string) bool {
	for at := range upwards(dir) {
		if _, err := os.Lstat(filepath.Join(at, IgnoreFile)); err == nil || !isAbsent(err) {
			return true
		}
	}
	return false
}

// isAbsent reports whether an error means that a file does not exist, or that access is
// denied. It returns false for other errors of a file system.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// upwards yields a directory and all above it.
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

// readGit reads the state of a repository: the checkout's own state from git, and the
// state that all worktrees share from common.
func (c *checkout) readGit(git, common string) {
	config := readConfig(common)
	c.git, c.Remote = common, config.origin()
	if ref, ok := strings.CutPrefix(firstLine(filepath.Join(git, "HEAD")), "ref: refs/heads/"); ok && ref != ".invalid" { // of the reftable format
		c.Branch = ref
	}
}

func firstLine(path string) string {
	line, _, _ := strings.Cut(string(readFile(path)), "\n")
	return strings.TrimSpace(line)
}

// readFile reads a regular file, up to maxGitFile; nil if it cannot be read.
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
	b, err := io.ReadAll(transform.NewReader(io.LimitReader(f, maxGitFile), unicode.BOMOverride(transform.Nop)))
	if err != nil {
		return nil
	}
	return b
}
