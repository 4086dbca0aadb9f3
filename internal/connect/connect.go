package connect

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
)

// Proxy is the address for clients.
type Proxy struct {
	Base      string            // such as http://127.0.0.1:8787
	Providers map[string]string // addresses of the APIs' own upstreams
	Named     map[string]string // addresses of the upstreams under /u/, by name
}

// through returns the base URL that leads through the proxy to the address a client uses
// now, which is "" for the provider's own.
func (p Proxy) through(k *key, now string) (string, error) {
	if now != "" && (now == p.Base || strings.HasPrefix(now, p.Base+"/")) {
		return now, nil
	}
	provider := p.Providers[k.API]
	if k.API == ChatGPT {
		provider, k.Suffix = p.Named[ChatGPT], "/u/"+ChatGPT
	}
	if now == "" && k.API != "" || provider != "" && sameBase(now, provider) {
		return p.Base + k.Suffix, nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Named)) {
		base := strings.TrimRight(p.Named[name], "/")
		if rest, ok := strings.CutPrefix(now, base); ok && (rest == "" || rest[0] == '/') {
			return p.Base + "/u/" + name + strings.TrimRight(rest, "/"), nil
		}
	}
	if now == "" {
		return "", errors.New("the provider of this client has no known address; set its base URL first, and add it to the setting upstreams")
	}
	base := withoutVersion(now)
	return "", fmt.Errorf("requests go to %s now; so that they still do, add it to the proxy's configuration, upstreams: {NAME: %s}, and connect again", now, base)
}

// withoutVersion removes the version from the end of a base URL.
func withoutVersion(base string) string {
	base = strings.TrimRight(base, "/")
	return strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/v1beta")
}

func sameBase(a, b string) bool { return withoutVersion(a) == withoutVersion(b) }

// Plan is the intended change of a client's file.
type Plan struct {
	Client  string   `json:"client"`
	File    string   `json:"file,omitempty"`
	Changes []Change `json:"changes"`
	Also    *Plan    `json:"also,omitempty"` // of another file that the client needs

	client *Client
	now    []byte // the file's content, nil without a file
	before []byte // the same without an earlier connection
	after  []byte
}

// Unchanged reports whether the client goes through the proxy already.
func (p *Plan) Unchanged() bool {
	return p.File != "" && bytes.Equal(p.now, p.after) && (p.Also == nil || p.Also.Unchanged())
}

// Plan returns the changes that connect a client.
func (m *Machine) Plan(c *Client) (*Plan, error) {
	p := &Plan{Client: c.Name, client: c, File: m.File(c)}
	if c.format == nil {
		for _, k := range c.Keys {
			value, err := m.Proxy.through(&k, m.Env(k.Env))
			if err != nil {
				return nil, err
			}
			p.Changes = append(p.Changes, Change{Path: k.Path, Value: value})
		}
		return p, nil
	}
	var err error
	if p.File, err = resolve(p.File); err != nil {
		return nil, err
	}
	if p.now, err = readFile(p.File); err != nil {
		return nil, err
	}
	r, err := m.record(c.Name)
	if err != nil {
		return nil, err
	}
	p.before = p.now
	if r != nil {
		if r.File != p.File {
			return nil, fmt.Errorf("%s is connected in %s; disconnect it first", c.Name, r.File)
		}
		if p.before, err = r.undo(c.format, p.now); err != nil {
			return nil, fmt.Errorf("%s: %w", p.File, err)
		}
	}
	if err := p.make(m); err != nil || c.Also == nil || c.Also.Env == "" {
		return p, err
	}
	set, err := m.settings(c, "")
	if err != nil || m.Env(c.Also.Env)+textAt(set, c.Also.Env) == "" {
		return p, err
	}
	if p.Also, err = m.Plan(c.Also); p.Also != nil && len(p.Also.Changes) == 0 {
		p.Also = nil // the file has a value
	}
	return p, err
}

// settings returns the values in a client's files except one, as the client merges them.
func (m *Machine) settings(c *Client, except string) (tree map[string]any, err error) {
	tree = map[string]any{}
	for _, name := range slices.Backward(c.Files) {
		file := filepath.Join(m.directory(c), name)
		text, err := readFile(file)
		if file == except || text == nil && err == nil {
			continue
		}
		one := map[string]any{}
		if err == nil {
			one, err = c.format.decode(text)
		}
		if err != nil {
			return tree, fmt.Errorf("%s: %w", file, err)
		}
		merge(tree, one)
	}
	return tree, nil
}

func merge(into, from map[string]any) {
	for name, value := range from {
		a, isTree := into[name].(map[string]any)
		if b, both := value.(map[string]any); isTree && both {
			merge(a, b)
		} else {
			into[name] = value
		}
	}
}

// make applies the changes to the text.
func (p *Plan) make(m *Machine) error {
	c := p.client
	tree, err := c.format.decode(p.before)
	if err != nil {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	others, err := m.settings(c, m.File(c))
	if err != nil {
		return err
	}
	p.after = p.before
	for _, v := range c.values(m, tree) {
		old := cmp.Or(textAt(tree, v.path...), textAt(others, v.path...))
		if v.Value != "" && old != "" {
			continue
		}
		if old == "" && v.Env != "" {
			old = m.Env(v.Env)
		}
		change := Change{Path: v.path, Value: v.Value}
		if v.Value == "" {
			change.Value, err = m.Proxy.through(&v.key, old)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", p.File, strings.Join(v.path, "."), err)
		}
		if p.after, err = c.format.apply(p.after, &change); err != nil {
			return fmt.Errorf("%s: %w", p.File, err)
		}
		p.Changes = append(p.Changes, change)
	}
	if len(p.Changes) == 0 && c.Program != "" {
		return fmt.Errorf("%s names no provider that can go through the proxy; set up %s first", p.File, c.Name)
	}
	return nil
}

// readFile returns nil if there is no file.
func readFile(file string) ([]byte, error) {
	text, err := os.ReadFile(file) // #nosec G304 -- a client's settings file
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}

// resolve follows links. It rejects a link to nothing.
func resolve(file string) (string, error) {
	target, err := filepath.EvalSymlinks(file)
	switch {
	case !errors.Is(err, os.ErrNotExist):
		return target, err
	case exists(file):
		return "", fmt.Errorf("%s is a link to a file that does not exist; create it, or remove the link", file)
	}
	return file, nil
}

// Apply writes the planned file. First it stores a record with the original bytes; if the
// file cannot be written, it restores the earlier record.
func (m *Machine) Apply(p *Plan) error {
	if p.Also != nil {
		if err := m.Apply(p.Also); err != nil {
			return err
		}
	}
	r := record{File: p.File, Before: p.before, Existed: p.before != nil, After: hash(p.after), Changes: p.Changes}
	text, err := json.Marshal(&r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.Store, 0o700); err != nil {
		return err
	}
	backup := m.recordFile(p.Client)
	earlier, err := readFile(backup)
	if err != nil {
		return err
	}
	if err := datadir.WriteFile(backup, text); err != nil {
		return fmt.Errorf("store the backup: %w", err)
	}
	if err = writeFile(p.File, p.after); err == nil {
		return nil
	}
	if earlier == nil {
		return errors.Join(err, os.Remove(backup))
	}
	return errors.Join(err, datadir.WriteFile(backup, earlier))
}

// writeFile replaces a file, and keeps its permissions.
func writeFile(file string, text []byte) error {
	mode := os.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		if mode = info.Mode().Perm(); mode&0o200 == 0 {
			return fmt.Errorf("%s is read-only; make it writable, or change it yourself", file)
		}
	} else if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := datadir.WriteFile(file, text); err != nil {
		return err
	}
	return os.Chmod(file, mode)
}

// record holds the data for disconnecting a client.
type record struct {
	File    string   `json:"file"`
	Existed bool     `json:"existed"`
	Before  []byte   `json:"before"`
	After   string   `json:"after"` // hash of the written file
	Changes []Change `json:"changes"`
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func (m *Machine) recordFile(name string) string { return filepath.Join(m.Store, name+".json") }

// record returns the record of a client, or nil.
func (m *Machine) record(name string) (*record, error) {
	text, err := readFile(m.recordFile(name))
	if err != nil || text == nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read the backup %s: %w", m.recordFile(name), err)
	}
	return r, nil
}

// Connected returns the clients with a record.
func (m *Machine) Connected() (list []*Client) {
	for _, c := range Clients {
		if exists(m.recordFile(c.Name)) {
			list = append(list, c)
		}
	}
	return list
}

// undo returns the text before the connection, nil for no file: the original bytes if the
// file is still as written, otherwise the text without the changes.
func (r *record) undo(f *format, now []byte) ([]byte, error) {
	if now == nil {
		return nil, nil
	}
	if hash(now) == r.After {
		if !r.Existed {
			return nil, nil
		}
		return append([]byte{}, r.Before...), nil
	}
	var err error
	for i := len(r.Changes) - 1; i >= 0; i-- {
		if now, err = f.undo(now, &r.Changes[i]); err != nil {
			return nil, fmt.Errorf("%w; remove %s yourself", err, strings.Join(r.Changes[i].Path, "."))
		}
	}
	if tree, err := f.decode(now); err == nil && len(tree) == 0 && !r.Existed {
		return nil, nil
	}
	return now, nil
}

// ErrNotConnected means that connect has not changed a client's settings.
var ErrNotConnected = errors.New("is not connected")

// Undone is the result of Disconnect.
type Undone struct {
	Client string `json:"client"`
	File   string `json:"file"`

	Exact bool     `json:"exact"`          // the original bytes were restored
	Gone  bool     `json:"gone,omitempty"` // the file does not exist
	Left  []string `json:"left,omitempty"` // settings that have another value now, and keep it
}

// Disconnect takes the changes of connect back.
func (m *Machine) Disconnect(c *Client) (done Undone, err error) {
	if c.format == nil {
		return done, fmt.Errorf("%s has no settings file; unset %s where you start it", c.Name, c.Keys[0].Env)
	}
	r, err := m.record(c.Name)
	if err != nil {
		return done, err
	}
	if c.Also != nil && exists(m.recordFile(c.Also.Name)) {
		if done, err = m.Disconnect(c.Also); err != nil || r == nil {
			return done, err
		}
	}
	if r == nil {
		return done, fmt.Errorf("%s %w", c.Name, ErrNotConnected)
	}
	done = Undone{Client: c.Name, File: r.File}
	file, err := resolve(r.File)
	if err != nil {
		return done, err
	}
	now, err := readFile(file)
	if err != nil {
		return done, err
	}
	before, err := r.undo(c.format, now)
	if err != nil {
		return done, fmt.Errorf("%s: %w", r.File, err)
	}
	switch {
	case before != nil:
		err = writeFile(file, before)
	case now != nil:
		err = os.Remove(file)
	}
	if err != nil {
		return done, err
	}
	done.Gone, done.Exact = now == nil, now != nil && hash(now) == r.After
	if tree, err := c.format.decode(now); err == nil && !done.Gone {
		for _, change := range r.Changes {
			if textAt(tree, change.Path...) != change.Value {
				done.Left = append(done.Left, strings.Join(change.Path, "."))
			}
		}
	}
	return done, os.Remove(m.recordFile(c.Name))
}
