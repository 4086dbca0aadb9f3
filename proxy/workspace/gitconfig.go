package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

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
	p := gitParser{rest: readFile(file)}
	for p.next() {
		if c.entries++; c.entries > maxEntries {
			return
		}
		switch p.section + "." + p.name {
		case "core.worktree":
			c.tree = p.value
		case "remote.url":
			c.remote(p.sub, p.value)
		case "url.insteadof":
			if p.value != "" {
				c.aliases = append(c.aliases, gitAlias{p.value, p.sub})
			}
		case "include.path":
			if p.sub == "" && p.value != "" {
				c.read(included(file, p.value))
			}
		}
	}
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

// gitParser reads a file of git's configuration, entry by entry. It skips invalid lines.
type gitParser struct {
	rest []byte

	section, name string // in lower case
	sub, value    string
}

// next goes to the next entry, and reports whether there is one.
func (p *gitParser) next() bool {
	for len(p.rest) > 0 {
		switch c := p.rest[0]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			p.rest = p.rest[1:]
		case c == '[':
			if !p.header() {
				p.skipLine()
			}
		case isLetter(c):
			p.name = strings.ToLower(p.word())
			p.skipSpace()
			if len(p.rest) > 0 && p.rest[0] == '=' {
				p.rest = p.rest[1:]
				if p.value = p.text(); p.section != "" {
					return true
				}
				continue
			}
			p.skipLine() // a flag, or a comment
		default:
			p.skipLine()
		}
	}
	return false
}

// header reads [section], [section.sub] or [section "sub"].
func (p *gitParser) header() bool {
	p.rest = p.rest[1:]
	p.section, p.sub, _ = strings.Cut(strings.ToLower(p.word()), ".")
	p.skipSpace()
	if len(p.rest) > 0 && p.rest[0] == '"' {
		var sub []byte
		p.rest = p.rest[1:]
		for len(p.rest) > 0 && p.rest[0] != '"' && p.rest[0] != '\n' {
			if p.rest[0] == '\\' && len(p.rest) > 1 && p.rest[1] != '\n' {
				p.rest = p.rest[1:]
			}
			sub, p.rest = append(sub, p.rest[0]), p.rest[1:]
		}
		p.sub = string(sub)
		if !p.takes('"') {
			p.section = ""
			return false
		}
	}
	if !p.takes(']') {
		p.section = ""
		return false
	}
	return true
}

func (p *gitParser) takes(c byte) bool {
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// text reads a value up to the end of its line, or to a comment. Quotes protect
// spaces and comment signs; a backslash begins an escape, and joins the next line
// at the end of one.
func (p *gitParser) text() string {
	var out []byte
	quoted, kept := false, 0 // kept is the length without white space at the end
	for len(p.rest) > 0 {
		c := p.rest[0]
		p.rest = p.rest[1:]
		if c == '\r' && len(p.rest) > 0 && p.rest[0] == '\n' {
			continue
		}
		switch {
		case c == '\n':
			return string(out[:kept])
		case (c == '#' || c == ';') && !quoted:
			p.skipLine()
			return string(out[:kept])
		case (c == ' ' || c == '\t') && !quoted:
			if len(out) > 0 {
				out = append(out, c)
			}
			continue
		case c == '"':
			quoted = !quoted
		case c == '\\':
			if out = p.escape(out); len(out) == 0 {
				continue
			}
		default:
			out = append(out, c)
		}
		kept = len(out)
	}
	return string(out[:kept])
}

// escape reads the rest of an escape after the backslash.
func (p *gitParser) escape(out []byte) []byte {
	if len(p.rest) > 1 && p.rest[0] == '\r' && p.rest[1] == '\n' {
		p.rest = p.rest[1:]
	}
	if len(p.rest) == 0 {
		return out
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	switch c {
	case '\n':
		return out
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'b':
		c = '\b'
	}
	return append(out, c)
}

// word reads the name of a section or of an entry.
func (p *gitParser) word() string {
	n := 0
	for n < len(p.rest) && (isLetter(p.rest[n]) || p.rest[n] >= '0' && p.rest[n] <= '9' || p.rest[n] == '-' || p.rest[n] == '.') {
		n++
	}
	w := p.rest[:n]
	p.rest = p.rest[n:]
	return string(w)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func (p *gitParser) skipSpace() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\t') {
		p.rest = p.rest[1:]
	}
}

func (p *gitParser) skipLine() {
	if i := bytes.IndexByte(p.rest, '\n'); i >= 0 {
		p.rest = p.rest[i+1:]
		return
	}
	p.rest = nil
}
