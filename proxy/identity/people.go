package identity

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// maxPeople is the largest size of the registry file, in bytes.
const maxPeople = 16 << 20

// registryFile is the form of the registry file.
type registryFile struct {
	Users []struct {
		ID            text
		DisplayName   string `yaml:"displayName"`
		Admin         bool
		Auditor       bool
		MemoryEnabled *bool `yaml:"memoryEnabled"`
		Identities    map[string]text
		Keys          []text
		Key           text
	}
}

// text is a value with its line in the file.
type text struct {
	string
	line int
}

func (t *text) UnmarshalYAML(n *yaml.Node) error {
	err := n.Decode(&t.string)
	if err == nil {
		t.line = n.Line
	}
	return err
}

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
	p := &peopleReader{name: filepath.Base(path), lines: make(map[string]int)}
	var file registryFile
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		p.notYAML(err)
	}
	p.read(&file)
	return p.people, errors.Join(p.errs...)
}

// peopleReader checks the entries of the file.
type peopleReader struct {
	name   string
	people []Person
	lines  map[string]int // line of each id, key and identity
	errs   []error
}

func (p *peopleReader) fail(line int, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s", p.name, line, fmt.Sprintf(format, args...)))
}

// notYAML adds the mistakes that the library has found. It quotes no value, which may be a
// credential.
func (p *peopleReader) notYAML(err error) {
	found := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if several := (*yaml.TypeError)(nil); errors.As(err, &several) {
		found = several.Errors
	}
	for _, what := range found {
		where := p.name + ": "
		if line, rest, ok := strings.Cut(strings.TrimPrefix(what, "line "), ": "); ok {
			where, what = p.name+":"+line+": ", rest
		}
		if field, _, ok := strings.Cut(what, " not found in type "); ok {
			what = strings.TrimPrefix(field, "field ") + " is unknown; the file has users, each with id, displayName, admin, auditor, memoryEnabled, identities, keys and key"
		} else if strings.HasPrefix(what, "cannot unmarshal ") {
			what = "the value has the wrong form; docs/teams.md has an example"
		}
		p.errs = append(p.errs, errors.New(where+what))
	}
}

var personID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (p *peopleReader) read(file *registryFile) {
	for i := range file.Users {
		of := &file.Users[i]
		one := Person{
			ID: of.ID.string, Name: of.DisplayName, Admin: of.Admin, Auditor: of.Auditor, Off: of.MemoryEnabled != nil && !*of.MemoryEnabled,
			Identities: make(map[string]string),
		}
		switch {
		case one.ID == "":
			p.errs = append(p.errs, fmt.Errorf("%s: person %d has no id; write e.g. id: josh", p.name, i+1))
		case !personID.MatchString(one.ID):
			p.fail(of.ID.line, "id: %q is not valid; write up to 100 letters, digits, dots, - and _", one.ID)
		default:
			p.once(of.ID.line, "id", one.ID)
		}
		for platform, id := range of.Identities {
			p.identity(&one, strings.ToLower(platform), id)
		}
		for _, key := range of.Keys {
			digits, ok := strings.CutPrefix(strings.ToLower(key.string), "sha256:")
			if b, err := hex.DecodeString(digits); !ok || err != nil || len(b) != 32 {
				// Do not quote the value: it may be the credential itself.
				p.fail(key.line, "keys: not the SHA-256 of a credential; write sha256: and the 64 hex digits that this prints: %s", `printf %s "$KEY" | sha256sum`)
				continue
			}
			p.once(key.line, "keys", digits)
			one.Keys = append(one.Keys, "sha256:"+digits)
		}
		if of.Key.line > 0 {
			var ok bool
			if one.Key, ok = graphiti.UserKey(of.Key.string); !ok {
				p.fail(of.Key.line, "key: not the key of a person; write e.g. user:josh or github_login:octocat")
			}
		}
		p.people = append(p.people, one)
	}
	all := newPeople(p.people)
	for i := range p.people {
		one := &p.people[i]
		if other := all.named(one.Key); one.Key != "" && other != one {
			p.fail(file.Users[i].Key.line, "key: %q is %s's already, so that %s would share their memory; give each a key of their own, or make them one person", one.Key, other.ID, one.ID)
		}
	}
}

func (p *peopleReader) identity(one *Person, platform string, id text) {
	if strings.Contains(platform, ":") || !personID.MatchString(platform) || id.string == "" || len(id.string) > 500 {
		p.fail(id.line, "identities: %q is not a platform with an id of up to 500 characters; write e.g. github: octocat", platform)
		return
	}
	at := identityOf(platform, id.string)
	p.once(id.line, "identities", at[0]+":"+at[1])
	one.Identities[platform] = at[1]
}

// once rejects a value that another person has.
func (p *peopleReader) once(line int, what, value string) {
	if before, ok := p.lines[what+value]; ok {
		p.fail(line, "%s: %q is another person's already, in line %d", what, value, before)
		return
	}
	p.lines[what+value] = line
}
