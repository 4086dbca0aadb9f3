// Package connect owns the settings of clients that send their requests through the proxy:
// the table of clients, the editing and restoring of their files, the trial of a client, the
// search for reasons why a client is not remembered, and the start of the proxy at login.
package connect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Client describes where a client stores the base URL of its provider.
type Client struct {
	Name    string
	Program string
	Agent   string   // its name in the request log, or "" if requests do not tell
	Moves   string   // variable that moves the directory
	Dir     string   // below home; XDG paths are below .config
	Files   []string // candidates: the first existing one, or else the first; it overrides the others
	Format  string   // "" if only variables set the base URL
	format  *format
	Keys    []key

	Also *Client // further settings, of which each is added where it has no value

	Env string // variable, or setting of the client, with which Also is needed, or ""

	Project  []string // project files that override the client's file
	Replaces bool     // any project file hides the whole file
	EnvWins  bool     `yaml:"envWins"` // the variables of Keys override the file
	Bypass   []string // variables that select an API without a base URL
	Login    []login
	Trial    []string // arguments that send one short request
	Vars     []string // variables for the trial
}

// key is a setting with a base URL.
type key struct {
	Path     []string // * means every existing element
	API      string   // openai, anthropic or gemini; "" for another provider
	Suffix   string   // part of the client's base URL after the proxy's address
	Env      string   // variable with the same meaning
	By, Is   string   // the sibling By has the value Is
	Existing bool     // only if the parent exists
	Value    string   // instead of a base URL
}

// login is a setting that selects a login without a configurable base URL.
type login struct{ File, Path, Value, Says string }

// Clients are the known clients.
var Clients = func() (all []*Client) {
	dialect.EachClient(func(file string, decode func(into any)) {
		var of struct{ Connect *Client }
		if decode(&of); of.Connect != nil {
			of.Connect.Name = file
			for c := of.Connect; c != nil; c = c.Also {
				c.format = formats[c.Format]
			}
			all = append(all, of.Connect)
		}
	})
	return all
}()

// StatusLine is the status line of Claude Code.
var StatusLine = Find("claude-code").Also

// Find returns a client by its name, or nil.
func Find(name string) *Client {
	for _, c := range Clients {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Names returns the names of the known clients.
func Names() (names []string) {
	for _, c := range Clients {
		names = append(names, c.Name)
	}
	return names
}

// codexKeys returns the base URL of the selected provider. A ChatGPT login has an upstream
// of its own.
func codexKeys(dir string, tree any) []key {
	if name := textAt(tree, "model_provider"); name != "" && name != "openai" {
		return []key{{Path: []string{"model_providers", name, "base_url"}, API: "openai", Suffix: "/v1", Existing: true}}
	}
	own := key{Path: []string{"openai_base_url"}, API: "openai", Suffix: "/v1"}
	text, err := os.ReadFile(filepath.Join(dir, "auth.json")) // #nosec G304 -- the client's own
	if err != nil {
		return []key{own}
	}
	login, err := strictJSON.decode(text)
	if _, tokens := at(login, []string{"tokens", "access_token"}); err == nil && tokens == 2 && textAt(login, "OPENAI_API_KEY") == "" {
		own.API, own.Suffix = ChatGPT, ""
	}
	return []key{own}
}

// ChatGPT is the name of the upstream of Codex with a ChatGPT login.
const ChatGPT = "chatgpt"

// Machine is the place where clients run.
type Machine struct {
	Home  string
	Dir   string // current directory
	Env   func(name string) string
	Look  func(program string) (string, error)
	Proxy Proxy
	Store string // directory of the records that disconnect needs
}

func (m *Machine) directory(c *Client) string {
	if c.Moves != "" && m.Env(c.Moves) != "" {
		return m.Env(c.Moves)
	}
	if rest, ok := strings.CutPrefix(c.Dir, ".config/"); ok && m.Env("XDG_CONFIG_HOME") != "" {
		return filepath.Join(m.Env("XDG_CONFIG_HOME"), rest)
	}
	return filepath.Join(m.Home, c.Dir)
}

// File returns the file with a client's base URL, or "" if only variables set it.
func (m *Machine) File(c *Client) string {
	for _, name := range c.Files {
		if file := filepath.Join(m.directory(c), name); exists(file) {
			return file
		}
	}
	if len(c.Files) == 0 {
		return ""
	}
	return filepath.Join(m.directory(c), c.Files[0])
}

// exists reports whether there is a file, or a link to nothing.
func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// values returns the places of a client's base URLs in its decoded settings.
func (c *Client) values(m *Machine, tree any) (found []place) {
	keys := c.Keys
	if c.Name == "codex" {
		keys = codexKeys(m.directory(c), tree)
	}
	for _, k := range keys {
		for _, path := range expand(tree, k.Path) {
			parent := path[:len(path)-1]
			if k.By != "" && textAt(tree, slices.Concat(parent, []string{k.By})...) != k.Is {
				continue
			}
			if _, depth := at(tree, parent); k.Existing && depth < len(parent) {
				continue
			}
			found = append(found, place{k, path})
		}
	}
	return found
}

// place is one base URL in a file.
type place struct {
	key
	path []string
}
