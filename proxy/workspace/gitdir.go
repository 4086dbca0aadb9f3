package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// gitDir finds the git directory of the checkout at a path whose .git has the info:
// git is its own, common that of its repository. A .git that points elsewhere, as in
// a worktree or a submodule, counts only if the git directory there points back at
// this checkout: an archive can hold a .git that points at anybody's repository. If
// ok is false, git is the path that .git points at.
func gitDir(at string, info fs.FileInfo) (git, common string, ok bool) {
	path := filepath.Join(at, ".git")
	if info.IsDir() {
		// A .git directory that git makes holds no commondir, which could point elsewhere.
		return path, path, !exists(filepath.Join(path, "commondir"))
	}
	git = path
	if info.Mode().IsRegular() {
		to, named := strings.CutPrefix(firstLine(path), "gitdir: ")
		if !named {
			return "", "", false
		}
		git = from(at, to)
	}
	to, err := filepath.EvalSymlinks(git)
	if err != nil {
		return git, "", false
	}
	if common, ok = worktreeOf(at, to); !ok && isWorkTree(at, to) {
		common, ok = to, true
	}
	return to, common, ok && sameOwner(at, path, to, common)
}

// worktreeOf returns the git directory of the repository of which at is a linked
// worktree. git is the worktree's own git directory.
func worktreeOf(at, git string) (common string, ok bool) {
	if filepath.Base(filepath.Dir(git)) != "worktrees" {
		return "", false
	}
	common = filepath.Dir(filepath.Dir(git))
	back := firstLine(filepath.Join(git, "gitdir"))
	return common, leadsTo(git, firstLine(filepath.Join(git, "commondir")), common) &&
		filepath.Base(back) == ".git" && leadsTo(git, filepath.Dir(back), at)
}

// isWorkTree reports whether the repository with the git directory git is checked
// out at at: by git init --separate-git-dir, or as a submodule inside the checkout
// that it is a part of.
func isWorkTree(at, git string) bool {
	if exists(filepath.Join(git, "commondir")) || !leadsTo(git, workTreeOf(filepath.Join(git, "config")), at) {
		return false
	}
	whole, rest, isPart := strings.Cut(git, string(filepath.Separator)+".git"+string(filepath.Separator))
	if !isPart {
		return true // git init --separate-git-dir
	}
	if parts := strings.Split(rest, string(filepath.Separator)); len(parts) > 2 && parts[0] == "worktrees" {
		tree := filepath.Join(whole, ".git", parts[0], parts[1])
		whole = filepath.Dir(from(tree, firstLine(filepath.Join(tree, "gitdir"))))
	}
	inside, err := filepath.Rel(whole, at)
	return err == nil && filepath.IsLocal(inside)
}

// mainOf returns the main checkout of the repository with the git directory common,
// of which at is a checkout. A repository without one, such as a bare one, is named by
// its git directory. What its configuration says counts only if that checkout leads
// back to it.
func mainOf(at, common string) string {
	if common == filepath.Join(at, ".git") {
		return at
	}
	if tree := workTreeOf(filepath.Join(common, "config")); tree != "" {
		tree, err := filepath.EvalSymlinks(from(common, tree))
		if err == nil && gitDirIs(tree, common) {
			return tree
		}
	}
	if filepath.Base(common) == ".git" {
		return filepath.Dir(common)
	}
	return common
}

// gitDirIs reports whether common is the git directory of the checkout at a path.
func gitDirIs(at, common string) bool {
	info, err := os.Lstat(filepath.Join(at, ".git"))
	if err != nil {
		return false
	}
	_, its, ok := gitDir(at, info)
	return ok && its == common
}

// leadsTo reports whether a path that a file in dir names leads to want, which is
// free of symbolic links.
func leadsTo(dir, path, want string) bool {
	if path == "" {
		return false
	}
	to, err := filepath.EvalSymlinks(from(dir, path))
	return err == nil && to == want
}

// from returns a path that is relative to a directory, unless it is absolute.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// exists reports whether a path exists, or cannot be looked at.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !os.IsNotExist(err)
}

// sameOwner reports whether files belong to the same user.
func sameOwner(paths ...string) bool {
	var first fileOwner
	for i, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			return false
		}
		if owner := ownerOf(info); i == 0 {
			first = owner
		} else if owner != first {
			return false
		}
	}
	return true
}
