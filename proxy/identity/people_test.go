package identity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
	"golang.org/x/text/encoding/unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

func readPeople(t *testing.T, text string) ([]Person, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return LoadPeople(path)
}

func TestPeople(t *testing.T) {
	key := "sha256:" + strings.Repeat("0a", 32)
	got, err := readPeople(t, `users:
  - id: josh
    displayName: Josh
    admin: true
    identities: {discord: "123456789012345678", github: BioShazard, signal: "+15555555555"}
    keys: ["`+strings.ToUpper(key[:10])+key[10:]+`"]
  - id: bot-account
    memoryEnabled: false
`)
	want := []Person{
		{ID: "josh", Name: "Josh", Admin: true, Identities: map[string]string{"discord": "123456789012345678", "github": "bioshazard", "signal": "+15555555555"}, Keys: []string{key}},
		{ID: "bot-account", Off: true, Identities: map[string]string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("LoadPeople: %v (-want +got):\n%s", err, diff)
	}
	for _, order := range []unicode.Endianness{unicode.LittleEndian, unicode.BigEndian} {
		file, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String("users:\r\n- id: josh\r\n")
		must(t, err)
		if got, err := readPeople(t, file); err != nil || len(got) != 1 || got[0].ID != "josh" {
			t.Errorf("LoadPeople of UTF-16: %+v, %v; want josh", got, err)
		}
	}
	if got, err := readPeople(t, ""); err != nil || len(got) != 0 {
		t.Errorf("LoadPeople of an empty file: %+v, %v; want nobody", got, err)
	}
}

// TestMistakesInTheRegistry checks that an error has the line and the accepted values, and
// never repeats a possible credential.
func TestMistakesInTheRegistry(t *testing.T) {
	const unknown = "is unknown; the file has users, each with id, displayName, admin, auditor, memoryEnabled, identities, keys and key"
	for _, tc := range []struct{ name, text, want string }{
		{"no list", "users: josh\n", "users.yaml:1: the value has the wrong form; docs/teams.md has an example"},
		{"unknown member", "people: []\n", "users.yaml:1: people " + unknown},
		{"no id", "users:\n- admin: true\n", "users.yaml: person 1 has no id; write e.g. id: josh"},
		{"bad id", "users:\n- id: a b\n", `users.yaml:2: id: "a b" is not valid; write up to 100 letters, digits, dots, - and _`},
		{"twice the same id", "users:\n- id: a\n- id: a\n", `users.yaml:3: id: "a" is another person's already, in line 2`},
		{"twice the same identity", "users:\n- id: a\n  identities: {github: x}\n- id: b\n  identities:\n    github: X\n", `users.yaml:6: identities: "github:x" is another person's already, in line 3`},
		{"twice the same address", "users:\n- id: a\n  identities: {openwebui: x@h.io}\n- id: b\n  identities: {openwebui: X@H.io}\n", `users.yaml:5: identities: "openwebui:x@h.io" is another person's already, in line 3`},
		{"flag", "users:\n- id: a\n  memoryEnabled: maybe\n", "users.yaml:3: the value has the wrong form; docs/teams.md has an example"},
		{"a credential as it is", "users:\n- id: a\n  keys: [sk-secret]\n", "users.yaml:3: keys: not the SHA-256 of a credential; write sha256: and the 64 hex digits that this prints: printf %s \"$KEY\" | sha256sum"},
		{"a credential in place of a list", "users:\n- id: a\n  keys: sk-secret\n", "users.yaml:3: the value has the wrong form; docs/teams.md has an example"},
		{"given twice", "users:\n- id: a\n  admin: true\n  admin: false\n", `users.yaml:4: mapping key "admin" already defined at line 3`},
		{"a person who is no mapping", "users:\n- josh\n", "users.yaml:2: the value has the wrong form; docs/teams.md has an example"},
		{"not YAML", "users: [\n", "users.yaml:1: did not find expected node content"},
		{"two mistakes", "users:\n- id: a\n  x: 1\n- admin: 2\n", "users.yaml:3: x " + unknown + "\nusers.yaml:4: the value has the wrong form; docs/teams.md has an example\nusers.yaml: person 2 has no id; write e.g. id: josh"},
	} {
		_, err := readPeople(t, tc.text)
		if err == nil {
			t.Errorf("%s: no error, want %q", tc.name, tc.want)
			continue
		}
		if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", tc.name, diff)
		}
	}
	if _, err := LoadPeople("/nowhere"); err == nil || !strings.HasPrefix(err.Error(), "identity.users_file: ") {
		t.Errorf("LoadPeople(/nowhere): %v, want an error that begins with identity.users_file", err)
	}
}

// TestRegistryIgnoresUnprovenCallers checks that the registry changes nothing for
// an unproven caller in multi mode: the result does not reveal whether a name is
// registered, has its memory turned off, or is unknown.
func TestRegistryIgnoresUnprovenCallers(t *testing.T) {
	var people Registry
	people.Set([]Person{
		{ID: "ann", Off: true, Identities: map[string]string{"email": "ann@example.com", "openwebui": "ow-1"}},
		{ID: "josh", Identities: map[string]string{"email": "josh@example.com", "openwebui": "ow-2"}},
	})
	for _, credential := range []string{"", "Bearer sk-any"} {
		for _, names := range [][]string{
			{"X-Graphiti-User", "email:ann@example.com", "email:josh@example.com", "email:nobody@example.com"},
			{"X-Graphiti-User", "ann", "josh", "nobody"},
			{"X-OpenWebUI-User-Id", "ow-1", "ow-2", "ow-3"},
		} {
			ask := func(known *Registry, name string, more ...string) Caller {
				var h fasthttp.RequestHeader
				if credential != "" {
					h.Set("Authorization", credential)
				}
				h.Set(names[0], name)
				for _, mail := range more {
					h.Add("X-OpenWebUI-User-Email", mail)
				}
				id := Settings{Multi: true, People: known}
				var cl Claims
				return id.Identify(cl.ReadHead(&h), "")
			}
			for _, name := range names[1:] {
				for _, more := range [][]string{nil, {"josh@example.com"}, {"ann@example.com", "josh@example.com"}} {
					if diff := cmp.Diff(ask(nil, name, more...), ask(&people, name, more...), cmp.AllowUnexported(graphiti.Who{})); diff != "" {
						t.Errorf("credential %q, %s %v: what the registry changes, want nothing (-without +with):\n%s", credential, name, more, diff)
					}
				}
			}
		}
	}
}
