package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// gitDir finds the git directories of the checkout at a path: git is the checkout's own,
// common is its repository's. info describes the checkout's .git. A .git that points to
// another directory, as in a worktree or a submodule, counts only if that git directory
// points back to this checkout: an archive can contain a .git that points to any
// repository. If ok is false, git is the target of .git.
func gitDir(at string, info fs.FileInfo) (git, common string, ok bool) {
	path := filepath.Join(at, ".git")
	if info.IsDir() {
		// git creates no commondir in a .git directory. It could point to another repository.
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

// worktreeOf returns the repository's git directory for the linked worktree at. git is the
// worktree's own git directory. ok is false if at is not a linked worktree.
func worktreeOf(at, git string) (common string, ok bool) {
	if filepath.Base(filepath.Dir(git)) != "worktrees" {
		return "", false
	}
	common = filepath.Dir(filepath.Dir(git))
	back := firstLine(filepath.Join(git, "gitdir"))
	return common, leadsTo(git, firstLine(filepath.Join(git, "commondir")), common) &&
		filepath.Base(back) == ".git" && leadsTo(git, filepath.Dir(back), at)
}

// isWorkTree reports whether at is the checkout of the repository with the git directory
// git: by git init --separate-git-dir, or as a submodule inside the checkout of its parent.
func isWorkTree(at, git string) bool {
	if exists(filepath.Join(git, "commondir")) || !leadsTo(git, readConfig(git).tree, at) {
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

// mainOf returns the main checkout of the repository with the git directory common. at is
// a checkout of the repository. For a repository without a main checkout, such as a bare
// repository, mainOf returns the git directory. A configured work tree counts only if it
// leads back to the repository.
func mainOf(at, common string) string {
	if common == filepath.Join(at, ".git") {
		return at
	}
	if tree := readConfig(common).tree; tree != "" {
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

// leadsTo reports whether a path from a file in dir leads to want. want must not contain
// symbolic links.
func leadsTo(dir, path, want string) bool {
	if path == "" {
		return false
	}
	to, err := filepath.EvalSymlinks(from(dir, path))
	return err == nil && to == want
}

// from returns a path, joined to dir if it is relative.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// exists reports whether a path exists. It also returns true if that cannot be determined.
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
