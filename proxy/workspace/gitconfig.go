package workspace

import (
	"bytes"
	"errors"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/gcfg/v2"
)

// maxEntries limits the entries of git's configuration that are read.
const maxEntries = 1 << 14

// gitConfig contains the entries of a repository's own configuration that the proxy uses. It
// reads no other file: neither includes nor the person's abbreviations of addresses (insteadOf).
type gitConfig struct {
	remotes []gitRemote // in the order of the file
	tree    string      // core.worktree, the directory of the checkout; empty if it is not set
	entries int
}

var (
	errTooLong = errors.New("too many entries")

	// The library needs a line for each header, and rejects the form [section.sub].
	header    = regexp.MustCompile(`(?m)^[ \t]*\[[\w-]+(?:[ \t]+"(?:[^"\\\n]|\\.)*")?\]`)
	oldHeader = regexp.MustCompile(`(?m)^([ \t]*\[[\w-]+)\.([\w.-]+)\]`)
)

type gitRemote struct{ name, url string }

// origin returns the address of the remote origin, or of the first remote if there is no
// origin.
func (c *gitConfig) origin() string {
	var origin gitRemote
	for _, r := range c.remotes {
		if origin.url == "" || r.name == "origin" {
			origin = r
		}
	}
	return origin.url
}

// readConfig reads the configuration of the repository with a git directory.
func readConfig(git string) (c gitConfig) {
	text := oldHeader.ReplaceAll(readFile(filepath.Join(git, "config")), []byte(`$1 "$2"]`))
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
		}
		return nil
	})
	return c
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
