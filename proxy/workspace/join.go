package workspace

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Joined is the result of Join: a directory and its new project.
type Joined struct {
	Directory string   `json:"directory"`
	Workspace string   `json:"workspace"`      // the project's key
	With      []string `json:"with,omitempty"` // the project's other git directories
}

// Join adds the repository of a directory to the project of its remote, even if the
// project is bound to another directory. file and clones are as in OfDirectory. A running
// proxy sees the change after placeFresh. Join also removes directories that no longer
// exist from the project.
func Join(dir, file string, clones []string) (j Joined, err error) {
	abs, err := existing(dir)
	if err != nil {
		return j, err
	}
	c := readCheckout(abs)
	j.Directory, j.Workspace = c.Root, Key(c.Remote)
	switch {
	case c.git == "" && exists(filepath.Join(c.Root, ".git")):
		return j, fmt.Errorf("the .git of %q leads to a repository that does not know this directory", c.Root)
	case c.git == "":
		return j, fmt.Errorf("%q is in no git repository", abs)
	case c.Remote == "":
		return j, fmt.Errorf("the repository %q has no remote that would name a project; add one with git remote add origin URL", c.Root)
	case j.Workspace == "":
		return j, fmt.Errorf("the remote of the repository %q is no address that names a project, such as https://github.com/org/repo", c.Root)
	}
	here, err := directoryAt(c.git)
	if err != nil {
		return j, err
	}
	p := &Projects{file: file, clones: clones}
	_, err = p.change(func(known map[string]project) error {
		one, bound := known[j.Workspace]
		if ours, _ := p.admits(known, j.Workspace, here, &c); bound && ours {
			return fmt.Errorf("%q belongs to the project %s already", c.Root, j.Workspace)
		}
		var all []directory
		if bound {
			all = slices.DeleteFunc(append([]directory{one.directory}, one.Joined...), directory.gone)
		}
		for _, d := range all {
			j.With = append(j.With, d.Git)
		}
		all = append(all, here)
		return bind(known, j.Workspace, project{all[0], all[1:]})
	})
	return j, err
}
