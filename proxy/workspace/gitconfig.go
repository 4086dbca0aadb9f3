package workspace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/gcfg/v2"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Limits for reading git's configuration.
const (
	maxIncludes = 16      // files, including the first
	maxEntries  = 1 << 14 // entries of all files
)

// gitConfig contains the entries of git's configuration that the proxy uses. It ignores
// conditional includes (includeIf).
type gitConfig struct {
	remotes []gitRemote // in the order of the file
	aliases []gitAlias
	tree    string // core.worktree
	files   int
	entries int
}

var (
	errTooLong = errors.New("too many entries")

	// The library needs a line for each header, and rejects the form [section.sub].
	header    = regexp.MustCompile(`(?m)^[ \t]*\[[\w-]+(?:[ \t]+"(?:[^"\\\n]|\\.)*")?\]`)
	oldHeader = regexp.MustCompile(`(?m)^([ \t]*\[[\w-]+)\.([\w.-]+)\]`)
)

type gitRemote struct{ name, url string }

// gitAlias is a url.<base>.insteadOf. pushInsteadOf does not count: git only
// pushes there.
type gitAlias struct{ short, base string }

// originOf returns the address of the remote origin, or of the first remote if there is
// no origin. It expands an abbreviation (insteadOf), but not a full address: an alias for
// a mirror, or for a host in the person's ssh configuration, has no meaning in other
// clones.
func originOf(file string) string {
	var c gitConfig
	c.read(file)
	var origin gitRemote
	for _, r := range c.remotes {
		if origin.url == "" || r.name == "origin" {
			origin = r
		}
	}
	url := origin.url
	if url == "" || isAddress(url) {
		return url
	}
	for _, f := range personalConfigs() {
		c.read(f)
	}
	var best gitAlias // the longest match, as in git
	for _, a := range c.aliases {
		if len(a.short) > len(best.short) && strings.HasPrefix(url, a.short) {
			best = a
		}
	}
	return best.base + strings.TrimPrefix(url, best.short)
}

// workTreeOf returns core.worktree, the directory of a repository's checkout; empty if it
// is not set.
func workTreeOf(file string) string {
	var c gitConfig
	c.read(file)
	return c.tree
}

// isAddress reports whether an address names a repository on a host with a domain, and so
// has the same meaning on every machine.
func isAddress(url string) bool {
	key, ok := graphiti.WorkspaceKey(url)
	repo, isRepo := strings.CutPrefix(key, graphiti.RepoPrefix)
	host, _, _ := strings.Cut(repo, "/")
	return ok && isRepo && strings.Contains(host, ".")
}

// personalConfigs returns the paths of a person's own git configuration.
func personalConfigs() (files []string) {
	home, err := os.UserHomeDir()
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		files = append(files, filepath.Join(dir, "git", "config"))
	} else if err == nil {
		files = append(files, filepath.Join(home, ".config", "git", "config"))
	}
	if err == nil {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	return files
}

// read adds the entries of a file, and of the files that it includes.
func (c *gitConfig) read(file string) {
	if c.files++; c.files > maxIncludes {
		return
	}
	text := oldHeader.ReplaceAll(readFile(file), []byte(`$1 "$2"]`))
	text = header.ReplaceAll(text, []byte("$0\n"))
	// The entries before an error count.
	_ = gcfg.ReadWithCallback(bytes.NewReader(text), func(section, sub, name, value string, _ bool) error {
		if c.entries++; c.entries > maxEntries {
			return errTooLong
		}
		value = strings.ReplaceAll(value, "\n", "") // a line that continues
		switch strings.ToLower(section + "." + name) {
		case "core.worktree":
			c.tree = value
		case "remote.url":
			c.remote(sub, value)
		case "url.insteadof":
			if value != "" {
				c.aliases = append(c.aliases, gitAlias{value, sub})
			}
		case "include.path":
			if sub == "" && value != "" {
				c.read(included(file, value))
			}
		}
		return nil
	})
}

// remote stores the first address of a remote. As in git, an empty address removes
// those before it.
func (c *gitConfig) remote(name, url string) {
	for i := range c.remotes {
		if r := &c.remotes[i]; r.name == name {
			if url == "" || r.url == "" {
				r.url = url
			}
			return
		}
	}
	if name != "" {
		c.remotes = append(c.remotes, gitRemote{name, url})
	}
}

// included returns the path of a file that another one includes.
func included(by, path string) string {
	if below, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		return filepath.Join(home, below)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(by), path)
}
