package identity

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// maxPeople is the largest size of the registry file, in bytes.
const maxPeople = 16 << 20

// LoadPeople reads the registry file (identity.users_file), or returns nil for an empty
// path. The error lists every mistake with its line.
func LoadPeople(path string) ([]Person, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path) // #nosec G304 -- the operator's file
	if err != nil {
		return nil, fmt.Errorf("identity.users_file: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(transform.NewReader(f, unicode.BOMOverride(transform.Nop)), maxPeople+1))
	if err != nil {
		return nil, fmt.Errorf("identity.users_file: %w", err)
	}
	if len(b) > maxPeople {
		return nil, fmt.Errorf("identity.users_file: %s is larger than %d MiB", path, maxPeople>>20)
	}
	p := &peopleReader{name: filepath.Base(path), ids: make(map[string]int), keys: make(map[string]int), identities: make(map[string]int), memories: make(map[int]*yaml.Node)}
	p.read(b)
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.people, nil
}

// peopleReader reads the YAML nodes of the file. ids, keys and identities map each value
// to the line of its first occurrence.
type peopleReader struct {
	name                  string
	people                []Person
	ids, keys, identities map[string]int
	memories              map[int]*yaml.Node // the node of each person's key, by their index in people
	errs                  []error
}

func (p *peopleReader) fail(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s", p.name, n.Line, fmt.Sprintf(format, args...)))
}

func (p *peopleReader) read(b []byte) {
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s: %s", p.name, strings.TrimPrefix(err.Error(), "yaml: ")))
		return
	}
	if len(doc.Content) == 0 {
		return
	}
	p.members(doc.Content[0], "the file", map[string]func(*yaml.Node){"users": p.users})
	p.checkMemories()
}

// members calls the reader of each member of a mapping.
func (p *peopleReader) members(n *yaml.Node, what string, readers map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "%s must contain %s", what, names(readers))
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		read := readers[k.Value]
		switch {
		case read == nil:
			p.fail(k, "%s is unknown; %s may contain %s", k.Value, what, names(readers))
		case seen[k.Value]:
			p.fail(k, "%s is given twice; keep one", k.Value)
		default:
			read(v)
		}
		seen[k.Value] = true
	}
}

func names(readers map[string]func(*yaml.Node)) string {
	return strings.Join(slices.Sorted(maps.Keys(readers)), ", ")
}

func (p *peopleReader) users(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "users must be a list of people, each with an id")
		return
	}
	for _, one := range n.Content {
		p.user(one)
	}
}

func (p *peopleReader) user(n *yaml.Node) {
	one := Person{Identities: make(map[string]string)}
	p.members(n, "a person", map[string]func(*yaml.Node){
		"id":            func(v *yaml.Node) { one.ID = p.id(v) },
		"displayName":   func(v *yaml.Node) { one.Name = p.text(v, "displayName") },
		"admin":         func(v *yaml.Node) { one.Admin = p.flag(v, "admin", false) },
		"auditor":       func(v *yaml.Node) { one.Auditor = p.flag(v, "auditor", false) },
		"memoryEnabled": func(v *yaml.Node) { one.Off = !p.flag(v, "memoryEnabled", true) },
		"identities":    func(v *yaml.Node) { p.platforms(v, &one) },
		"keys":          func(v *yaml.Node) { p.credentials(v, &one) },
		"key":           func(v *yaml.Node) { one.Key = p.memory(v) },
	})
	if one.ID == "" && n.Kind == yaml.MappingNode {
		p.fail(n, "a person has no id; write e.g. id: josh")
	}
	p.people = append(p.people, one)
}

var personID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (p *peopleReader) id(n *yaml.Node) string {
	if !personID.MatchString(n.Value) || n.Kind != yaml.ScalarNode {
		p.fail(n, "id: %q is not valid; write up to 100 letters, digits, dots, - and _", n.Value)
		return "?"
	}
	p.once(n, p.ids, n.Value, "id")
	return n.Value
}

func (p *peopleReader) memory(n *yaml.Node) string {
	key, ok := graphiti.UserKey(n.Value)
	if !ok || n.Kind != yaml.ScalarNode {
		p.fail(n, "key: not the key of a person; write e.g. user:josh or github_login:octocat")
		return ""
	}
	p.memories[len(p.people)] = n
	return key
}

// checkMemories rejects a key that is another person's memory or identity.
func (p *peopleReader) checkMemories() {
	all := newPeople(p.people)
	for i := range p.people {
		n, one := p.memories[i], &p.people[i]
		if n == nil {
			continue
		}
		if other := all.named(one.Key); other != one {
			p.fail(n, "key: %q is %s's already, so that %s would share their memory; give each a key of their own, or make them one person", one.Key, other.ID, one.ID)
		}
	}
}

// once rejects a value that another person has.
func (p *peopleReader) once(n *yaml.Node, said map[string]int, value, what string) {
	if line, ok := said[value]; ok {
		p.fail(n, "%s: %q is another person's already, in line %d", what, value, line)
		return
	}
	said[value] = n.Line
}

func (p *peopleReader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" || len(n.Value) > 500 {
		p.fail(n, "%s must be a text of up to 500 characters", what)
	}
	return n.Value
}

func (p *peopleReader) flag(n *yaml.Node, what string, otherwise bool) bool {
	v := otherwise
	if n.Kind != yaml.ScalarNode || n.Decode(&v) != nil {
		p.fail(n, "%s: %q is not true or false", what, n.Value)
	}
	return v
}

func (p *peopleReader) platforms(n *yaml.Node, one *Person) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "identities must be ids by platform, as in github: octocat")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		platform, id := strings.ToLower(k.Value), p.text(v, "identities."+k.Value)
		if strings.Contains(platform, ":") || !personID.MatchString(platform) {
			p.fail(k, "identities: %q is not the name of a platform", k.Value)
			continue
		}
		if platform == "github" || strings.Contains(id, "@") { // a login, an e-mail address
			id = strings.ToLower(id)
		}
		p.once(v, p.identities, platform+":"+id, "identities")
		one.Identities[platform] = id
	}
}

func (p *peopleReader) credentials(n *yaml.Node, one *Person) {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "keys must be a list of sha256:<hex digits>")
		return
	}
	for _, k := range n.Content {
		digits, ok := strings.CutPrefix(strings.ToLower(k.Value), "sha256:")
		if b, err := hex.DecodeString(digits); !ok || err != nil || len(b) != 32 {
			// Do not quote the value: it may be the credential itself.
			p.fail(k, "keys: not the SHA-256 of a credential; write sha256: and the 64 hex digits that this prints: %s", `printf %s "$KEY" | sha256sum`)
			continue
		}
		p.once(k, p.keys, digits, "keys")
		one.Keys = append(one.Keys, "sha256:"+digits)
	}
}
