package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// load reads a configuration without the environment and the files of this machine.
func load(t *testing.T, file string, env []string, flags map[string]string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	s := Sources{Env: append([]string{"HOME=" + dir}, env...), Flags: flags}
	if file != "" {
		s.File = filepath.Join(dir, "graphiti-proxy.yaml")
		must(t, os.WriteFile(s.File, []byte(file), 0o600))
	}
	return Load(s)
}

func TestDefaultsAreValid(t *testing.T) {
	c, err := load(t, "", nil, nil)
	must(t, err)
	if c.Listen != "127.0.0.1:8787" || c.Recall.Timeout != 400*time.Millisecond || c.Limits.InspectBytes != 16<<20 ||
		c.Recall.StickyTTL != 30*24*time.Hour || c.Upstream.OpenAI != "https://api.openai.com" || c.Memory.Backend != "embedded" ||
		!strings.HasSuffix(c.DataDir, filepath.Join(".local", "share", "graphiti-proxy")) {
		t.Errorf("got %+v, want the defaults", c)
	}
}

func TestFlagBeatsEnvironmentBeatsFile(t *testing.T) {
	file := "recall:\n  timeout: 1ms\n  max_facts: 1\n  max_chars: 300\n"
	c, err := load(t, file, []string{"GRAPHITI_PROXY_RECALL_TIMEOUT=2ms", "GRAPHITI_PROXY_RECALL_MAX_FACTS=2"}, map[string]string{"recall.timeout": "3ms"})
	must(t, err)
	if c.Recall.Timeout != 3*time.Millisecond || c.Recall.MaxFacts != 2 || c.Recall.MaxChars != 300 {
		t.Errorf("got recall %+v, want flags before the environment before the file", c.Recall)
	}
	for key, want := range map[string]string{
		"recall.timeout": "flag", "recall.max_facts": "environment GRAPHITI_PROXY_RECALL_MAX_FACTS",
		"recall.max_chars": "graphiti-proxy.yaml:4", "recall.enabled": "default",
	} {
		if got := c.Origin(key); got != want {
			t.Errorf("%s comes from %q, want %q", key, got, want)
		}
	}
}

func TestGraphitiURLSelectsGraphiti(t *testing.T) {
	c, err := load(t, "", []string{"GRAPHITI_URL=http://g:8000"}, nil)
	if err != nil || c.Memory.Backend != "graphiti" || c.Memory.Endpoint != "http://g:8000" || c.Consented() {
		t.Errorf("got %+v, %v; want backend graphiti at http://g:8000 without consent", c, err)
	}
	c, err = load(t, "memory:\n  backend: embedded\n", []string{"GRAPHITI_URL=http://g:8000"}, nil)
	if err != nil || c.Memory.Backend != "embedded" {
		t.Errorf("a backend that was chosen is overruled: %+v, %v", c, err)
	}
}

// TestMistakes checks that each mistake is reported in one line with its place, the mistake
// and a remedy.
func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		file  string
		env   []string
		flags map[string]string
		want  string
	}{
		{"no duration", "recall:\n  timeout: fast\n", nil, nil,
			`graphiti-proxy.yaml:2: recall.timeout: "fast" is not a duration; write e.g. 400ms`},
		{"all at once", "recall:\n  timeout: 2m\n  max_facts: 0\nlog:\n  level: loud\n", nil, nil,
			`graphiti-proxy.yaml:2: recall.timeout: "2m" is out of range; write a value between 1ms and 1m` + "\n" +
				`graphiti-proxy.yaml:3: recall.max_facts: "0" is out of range; write a value between 1 and 100` + "\n" +
				`graphiti-proxy.yaml:5: log.level: "loud" is not known; write debug, info, warn or error`},
		{"no upper limit", "limits:\n  requests_per_minute: -1\n", nil, nil,
			`graphiti-proxy.yaml:2: limits.requests_per_minute: "-1" is out of range; write a value of at least 0`},
		{"unknown key", "recal:\n  timeout: 1s\n", nil, nil,
			`graphiti-proxy.yaml:1: recal is not a setting; did you mean recall?`},
		{"unknown key below", "recall:\n  timout: 1s\n", nil, nil,
			`graphiti-proxy.yaml:2: recall.timout is not a setting; did you mean recall.timeout?`},
		{"a setting below nothing", "firmware:\n  listen: 127.0.0.1:1\n", nil, map[string]string{"server.listen": "127.0.0.1:1", "recall": "off", "recal.enabled": "true"},
			`graphiti-proxy.yaml:1: firmware is not a setting; graphiti-proxy config print lists them all` + "\n" +
				`flag --set: recal.enabled is not a setting; did you mean recall.enabled?` + "\n" +
				`flag --set: recall is a group of settings; write e.g. recall.also_groups` + "\n" +
				`flag --set: server.listen is not a setting; did you mean listen?`},
		{"what follows from a mistake", "", nil, map[string]string{"listen": "8787"},
			`flag: listen: "8787" is not an address to listen on; write host:port, e.g. 127.0.0.1:8787`},
		{"tabs", "listen: 127.0.0.1:1\nrecall:\n\ttimeout: 1s\n", nil, nil, `graphiti-proxy.yaml:3: tabs are not allowed; indent with spaces`},
		{"twice", "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", nil, nil,
			`graphiti-proxy.yaml:2: listen is given twice; keep one`},
		{"value where settings belong", "recall: yes\n", nil, nil,
			`graphiti-proxy.yaml:1: recall expects settings below it, as in "recall:" and then, indented, "timeout: 400ms"`},
		{"its own address", "listen: 127.0.0.1:1234\nupstream:\n  openai: http://localhost:1234/v1\n", nil, nil,
			`graphiti-proxy.yaml:1: listen: "127.0.0.1:1234" is the proxy itself, and so is the upstream http://localhost:1234; write the provider's address there`},
		{"its own address, of all", "listen: :1234\nidentity:\n  mode: multi\nupstreams:\n  ollama: http://127.0.0.1:1234\n", nil, nil,
			`graphiti-proxy.yaml:1: listen: ":1234" is the proxy itself, and so is the upstream http://127.0.0.1:1234; write the provider's address there`},
		{"no YAML", "a: [\n", nil, nil, `graphiti-proxy.yaml:1: did not find expected node content`},
		{"environment", "", []string{"GRAPHITI_PROXY_LIMITS_INSPECT_BYTES=lots"}, nil,
			`environment GRAPHITI_PROXY_LIMITS_INSPECT_BYTES: limits.inspect_bytes: "lots" is not a size; write e.g. 16MiB`},
		{"size whose default says nothing", "", []string{"GRAPHITI_PROXY_LIMITS_INSPECT_TOTAL=lots"}, nil,
			`environment GRAPHITI_PROXY_LIMITS_INSPECT_TOTAL: limits.inspect_total: "lots" is not a size; write e.g. 64MiB`},
		{"unknown name in the environment", "", []string{"GRAPHITI_PROXY_LISTN=x"}, nil,
			`environment: GRAPHITI_PROXY_LISTN is not a setting; did you mean GRAPHITI_PROXY_LISTEN?`},
		{"flag", "", nil, map[string]string{"recall.scopes": "session,galaxy"},
			`flag: recall.scopes: "galaxy" is not known here; write auto, or some of session, workspace, user, agent`},
		{"address with a password is not shown", "", nil, map[string]string{"upstream.openai": "https://u:secret@host"},
			`flag: upstream.openai: "https://u:xxxxx@host" is not an address that can be used; write http://host[:port][/path] or https://…, without a user, a query or a fragment`},
		{"a call that MCP does not have", "memory:\n  backend: graphiti-mcp\n  endpoint: http://127.0.0.1:1\nrecall:\n  query: get-memory\n", nil, nil,
			`graphiti-proxy.yaml:5: recall.query: get-memory is a call of Graphiti's REST service, and memory.backend is graphiti-mcp; write search`},
		{"a client that names the group", "identity:\n  mode: multi\n  workspace_ids: raw\n", nil, nil,
			`graphiti-proxy.yaml:3: identity.workspace_ids: with raw, a client names the group, so in identity.mode multi it could name another person's; write canonical`},
		{"a group that is none", "memory:\n  endpoint: http://127.0.0.1:1\nrecall:\n  also_groups: [main, \"a b\"]\n", nil, nil,
			`graphiti-proxy.yaml:4: recall.also_groups: "a b" is not a valid group name; use letters, digits, - and _, as in main or opencode-{directory}__main`},
		{"nobody knows what to fill in", "memory:\n  endpoint: http://127.0.0.1:1\nrecall:\n  also_groups: [\"x-{host}\"]\n", nil, nil,
			`graphiti-proxy.yaml:4: recall.also_groups: "x-{host}": {host} is unknown; write {directory}, {login} or {user}`},
		{"a claim opens no group", "memory:\n  endpoint: http://127.0.0.1:1\nidentity:\n  mode: multi\nrecall:\n  also_groups: [\"opencode-{directory}__main\"]\n", nil, nil,
			`graphiti-proxy.yaml:6: recall.also_groups: "opencode-{directory}__main": {directory} is unproven in identity.mode multi; write {user}, the authenticated person`},
		{"groups of no Graphiti", "recall:\n  also_groups: [main]\n", nil, nil,
			`graphiti-proxy.yaml:2: recall.also_groups: these are groups of a Graphiti, and memory.backend is embedded; set memory.endpoint, or remove the groups`},
		{"open to other machines", "listen: 0.0.0.0:80\n", nil, nil,
			`graphiti-proxy.yaml:1: listen: "0.0.0.0:80" is open to other machines, and identity.mode is single: all its clients would share one person's memory; listen on 127.0.0.1, name the networks that are yours in listen.allow or your keys in client.keys, or set identity.mode to multi, which keeps every credential apart`},
		{"everybody's network", "listen: 0.0.0.0:80\nlisten.allow: [10.0.0.0/8, \"::/0\"]\n", nil, nil,
			`graphiti-proxy.yaml:1: listen: "0.0.0.0:80" is open to other machines, and identity.mode is single: all its clients would share one person's memory; listen on 127.0.0.1, name the networks that are yours in listen.allow or your keys in client.keys, or set identity.mode to multi, which keeps every credential apart`},
		{"no network", "listen.allow: [10.0.0.0/8, docker]\n", nil, nil,
			`graphiti-proxy.yaml:1: listen.allow: "docker" is not a network; write e.g. 172.16.0.0/12, or an address`},
		{"no hash of a key", "client:\n  keys: ['sha256:12']\n", nil, nil,
			`graphiti-proxy.yaml:2: client.keys: item 1 needs 64 hex digits after its sha256 prefix`},
		{"a directory that is not whole", "workspace:\n  clones: [/home/me/src/*, '*/mine', ~/src/*]\n", nil, nil,
			`graphiti-proxy.yaml:2: workspace.clones: "~/src/*" is not an absolute path; write e.g. /home/me/src/*`},
		{"a file for what is no secret", "", []string{"GRAPHITI_PROXY_MEMORY_ENDPOINT_FILE=/x"}, nil,
			`environment: GRAPHITI_PROXY_MEMORY_ENDPOINT_FILE is not a setting; did you mean GRAPHITI_PROXY_MEMORY_ENDPOINT?`},
		{"nothing similar", "", []string{"GRAPHITI_PROXY_GRAPHITI_URL=http://x"}, nil,
			`environment: GRAPHITI_PROXY_GRAPHITI_URL is not a setting; graphiti-proxy config print lists them all`},
		{"a secret twice", "", []string{"GRAPHITI_PROXY_ADMIN_TOKEN_FILE=/x", "GRAPHITI_PROXY_ADMIN_TOKEN=s3cret"}, nil,
			`environment GRAPHITI_PROXY_ADMIN_TOKEN_FILE: GRAPHITI_PROXY_ADMIN_TOKEN is set as well; keep one`},
		{"a secret's file that is not there", "", []string{"GRAPHITI_PROXY_ADMIN_TOKEN_FILE=/nowhere/token"}, nil,
			`environment GRAPHITI_PROXY_ADMIN_TOKEN_FILE: admin.token: open /nowhere/token: no such file or directory`},
		{"open admin side", "admin:\n  listen: :9000\n", nil, nil,
			`graphiti-proxy.yaml:2: admin.listen: ":9000" is open to other machines; set admin.token, or listen on 127.0.0.1`},
		{"same address", "admin:\n  listen: 127.0.0.1:8787\n", nil, nil,
			`graphiti-proxy.yaml:2: admin.listen: "127.0.0.1:8787" is also listen; give each its own port`},
		{"what config print shows in place of a secret", "admin:\n  token: '***'\nidentity:\n  trusted_keys: [a, '***']\n", nil, nil,
			`graphiti-proxy.yaml:2: admin.token: *** stands for a secret where settings are shown; write the secret itself, or remove the setting` + "\n" +
				`graphiti-proxy.yaml:4: identity.trusted_keys: *** stands for a secret where settings are shown; write the secret itself, or remove the setting`},
		{"collector without a scheme", "otel:\n  endpoint: collector:4318\n", nil, nil,
			`graphiti-proxy.yaml:2: otel.endpoint: "collector:4318" is not an address that can be used; write http://host[:port][/path] or https://…, without a user, a query or a fragment`},
		{"no endpoint", "memory:\n  backend: graphiti\n", nil, nil,
			`graphiti-proxy.yaml:2: memory.endpoint: memory.backend graphiti needs an endpoint; write e.g. http://127.0.0.1:8000`},
		{"an owner who is not named", "ingest:\n  ownership: true\n", nil, nil,
			"graphiti-proxy.yaml:2: ingest.ownership: the configuration names no owner of a memory; set identity.owner, or identity.users_file in identity.mode multi"},
		{"a name for an upstream that is a provider's", "upstreams:\n  openai: http://127.0.0.1:1\n", nil, nil,
			`graphiti-proxy.yaml:1: upstreams: "openai" is a provider with its own setting; set upstream.openai, or choose another name`},
		{"no name", "upstreams: {My Model: http://127.0.0.1:1}\n", nil, nil,
			`graphiti-proxy.yaml:1: upstreams: "My Model" is not a name; write up to 32 small letters, digits, - and _, as in ollama: http://127.0.0.1:11434`},
		{"an age without a key", "memory:\n  retention: {mira: 30d}\n", nil, nil,
			`graphiti-proxy.yaml:2: memory.retention: "mira" is neither a kind nor the key of a project or a person; write messages, facts or work, or e.g. user:mira or github_repo:github.com/acme/app`},
		{"a hold of a kind", "", nil, map[string]string{"memory.retention": "work=hold"},
			`flag: memory.retention: "hold" is no age of a kind; write e.g. 30d, and hold for a project or a person`},
		{"an open map", "", nil, map[string]string{"quota.person": "{messages: 60"},
			`flag: quota.person: "{messages: 60" is no map; write {name: value, …} or name=value,…`},
		{"a limit of tokens for everything", "", nil, map[string]string{"quota.all": "{tokens: 60}"},
			`flag: quota.all: "tokens" is no limit; write messages or bytes, tokens of a person or tenant, or disk in quota.all`},
		{"no age", "", nil, map[string]string{"memory.retention": "user:mira=soon"},
			`flag: memory.retention: "soon" is not an age; write e.g. 30d, or hold`},
		{"an upstream twice", "", nil, map[string]string{"upstreams": "a=http://x,a=http://y"},
			`flag: upstreams: "a" is given twice; keep one`},
		{"a name and no address", "", []string{"GRAPHITI_PROXY_UPSTREAMS=ollama"}, nil,
			`environment GRAPHITI_PROXY_UPSTREAMS: upstreams: "ollama" has no address; write e.g. ollama: http://127.0.0.1:11434`},
		{"a name and something else", "upstreams:\n  ollama: 127.0.0.1:11434\n", nil, nil,
			`graphiti-proxy.yaml:1: upstreams.ollama: "127.0.0.1:11434" is not an address that can be used; write http://host[:port][/path] or https://…, without a user, a query or a fragment`},
		{"settings behind a name", "upstreams:\n  ollama: {url: x}\n", nil, nil,
			`graphiti-proxy.yaml:1: upstreams: ollama needs a plain value`},
		{"a model for facts without an address", "distil:\n  model: m\n", nil, nil,
			"graphiti-proxy.yaml:2: distil.url: distil.model or distil.api_key is set, and there is no address; write e.g. http://127.0.0.1:11434/v1"},
		{"two models for facts", "distil:\n  upstream: true\n  url: http://127.0.0.1:1/v1\n  model: m\n", nil, nil,
			"graphiti-proxy.yaml:2: distil.upstream: distil.url or distil.api_key is set too; leave one of them out"},
		{"an upstream for facts without a model", "distil:\n  upstream: true\n", nil, nil,
			"graphiti-proxy.yaml:2: distil.model: distil.upstream is set, and there is no model; write the name of one that your provider has"},
		{"an address for facts without a model", "distil:\n  url: http://127.0.0.1:1/v1\n", nil, nil,
			"graphiti-proxy.yaml:2: distil.model: distil.url is set, and there is no model; write the name of one that the server has"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.file, tc.env, tc.flags)
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAddressesWithoutAScheme checks that an address without a scheme is refused: http would send
// keys in the clear.
func TestAddressesWithoutAScheme(t *testing.T) {
	for _, file := range []string{"upstream:\n  openai: api.openai.com\n", "memory:\n  endpoint: localhost:8000\n"} {
		if _, err := load(t, file, nil, nil); err == nil || !strings.Contains(err.Error(), "write http://host[:port][/path]") {
			t.Errorf("%q: got %v, want an error with the remedy", file, err)
		}
	}
}

// TestEndpointSelectsGraphiti checks that memory.endpoint selects the graphiti backend,
// like GRAPHITI_URL, unless a backend is set.
func TestEndpointSelectsGraphiti(t *testing.T) {
	c, err := load(t, "memory:\n  endpoint: http://g:8000\n  consent: true\n", nil, nil)
	if err != nil || c.Memory.Backend != "graphiti" || !c.Consented() {
		t.Errorf("got %+v, %v; want backend graphiti with consent", c, err)
	}
	c, err = load(t, "memory:\n  endpoint: http://g:8000\n  backend: \"off\"\n", nil, nil)
	if err != nil || c.Memory.Backend != "off" {
		t.Errorf("got %+v, %v; want backend off", c, err)
	}
}

// TestBaseURLWithAVersion checks that a provider's base URL is used without its API
// version, and that a note reports it.
func TestBaseURLWithAVersion(t *testing.T) {
	c, err := load(t, "upstream:\n  openai: https://openrouter.ai/api/v1/\n  anthropic: http://a/v1\n  gemini: http://g/v1beta\n", nil, nil)
	if err != nil || c.Upstream.OpenAI != "https://openrouter.ai/api" || c.Upstream.Anthropic != "http://a" || c.Upstream.Gemini != "http://g" {
		t.Errorf("got %+v, %v; want upstreams without versions", c, err)
	}
	if notes := c.Notes(); len(notes) != 3 || !strings.Contains(notes[2], "upstream.openai: https://openrouter.ai/api/v1 is used without /v1") {
		t.Errorf("got notes %q, want three, one about each upstream", notes)
	}
	c, err = load(t, "upstream:\n  openai: http://h/v1beta\n", nil, nil)
	if err != nil || c.Upstream.OpenAI != "http://h/v1beta" || len(c.Notes()) != 0 {
		t.Errorf("got %+v, %v; want upstream http://h/v1beta as written, and no notes", c, err)
	}
}

// TestTemplate checks that the templates have the default values, both unchanged and with every
// setting uncommented.
func TestTemplate(t *testing.T) {
	for _, short := range []bool{false, true} {
		var out bytes.Buffer
		Template(&out, short)
		inForce := regexp.MustCompile(`(?m)^#([a-z_.]+:.*)$`).ReplaceAllString(out.String(), "$1")
		plain, err := load(t, "", nil, nil)
		must(t, err)
		for what, file := range map[string]string{"as it is": out.String(), "in force": inForce} {
			c, err := load(t, file, nil, nil)
			if err != nil {
				t.Fatalf("%s is not read back: %v\n%s", what, err, file)
			}
			set := 0
			for i, s := range c.Settings() {
				if want := plain.Settings()[i]; s.Key != "data_dir" && !cmp.Equal(s.Value, want.Value) {
					t.Errorf("%s: %s is %v, want %v", what, s.Key, s.Value, want.Value)
				}
				if strings.HasPrefix(s.Origin, "graphiti-proxy.yaml:") {
					set++
				}
			}
			want := map[bool]int{false: len(c.Settings()), true: 9}[short]
			if set != want && what == "in force" {
				t.Errorf("%d settings are in force, want %d:\n%s", set, want, file)
			}
		}
	}
}

// TestPrintCanBeReadAgain checks that printed settings can be loaded again, and that they
// mask secrets, which the reader has to fill in.
func TestPrintCanBeReadAgain(t *testing.T) {
	c, err := load(t, "listen: 127.0.0.1:1\nidentity:\n  trusted_keys: [sk-secret, sk-other]\nrecall:\n  scopes: [user, session]\nlisten.allow: [10.0.0.0/8, 172.17.0.1]\nupstreams:\n  groq: https://api.groq.com/openai\n  ollama: http://127.0.0.1:11434\n", nil, nil)
	must(t, err)
	var out bytes.Buffer
	c.Print(&out, false)
	if strings.Contains(out.String(), "sk-") || !strings.Contains(out.String(), "trusted_keys: '***'") {
		t.Errorf("got %s, want masked secrets", out.String())
	}
	for _, want := range []string{"\n  enabled: true\n", "\n  max_facts: 12\n", "\n  scopes: [user, session]\n", "\n  skip_paths: []\n", "\n  sample: 1\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no plain %q in %s", want, out.String())
		}
	}
	if used, err := load(t, out.String(), nil, nil); err != nil || len(used.Identity.TrustedKeys) != 0 {
		t.Errorf("it cannot be used as a file: %v", err)
	}
	again, err := load(t, strings.ReplaceAll(out.String(), "# trusted_keys: '***'", "trusted_keys: [sk-secret, sk-other]"), nil, nil)
	if err != nil {
		t.Fatalf("the printed settings cannot be loaded: %v in\n%s", err, out.String())
	}
	for i, s := range again.Settings() {
		if want := c.Settings()[i]; !cmp.Equal(s.Value, want.Value) {
			t.Errorf("%s is %v after reading again, was %v", s.Key, s.Value, want.Value)
		}
	}
}

// TestReferenceIsCurrent checks that docs/configuration.md is up to date. UPDATE=1 go test
// ./config rewrites it.
func TestReferenceIsCurrent(t *testing.T) {
	var want bytes.Buffer
	want.WriteString("# Settings\n\nMade from the code. The variable of `recall.timeout` is `GRAPHITI_PROXY_RECALL_TIMEOUT` ([settings.md](settings.md)). Durations as `400ms` or `30d`, sizes as `8MiB`, lists in the environment with commas.\n\n")
	reference(&want)
	const path = "../docs/configuration.md"
	if os.Getenv("UPDATE") != "" {
		must(t, os.WriteFile(path, want.Bytes(), 0o644))
	}
	got := helptest.File(t, path)
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("docs/configuration.md is not current (-want +got):\n%s", diff)
	}
}

// TestNoHome checks that Load fails without HOME and data_dir, so that the memory never
// depends on the current directory.
func TestNoHome(t *testing.T) {
	t.Setenv("HOME", "")
	dir := t.TempDir()
	if _, err := Load(Sources{}); err == nil || !strings.Contains(err.Error(), "set HOME, or data_dir") {
		t.Errorf("got error %v, want the advice to set HOME, or data_dir", err)
	}
	for name, s := range map[string]Sources{
		"XDG_DATA_HOME": {Env: []string{"XDG_DATA_HOME=" + dir}},
		"data_dir":      {Flags: map[string]string{"data_dir": dir}},
	} {
		if c, err := Load(s); err != nil || !strings.HasPrefix(c.DataDir, dir) {
			t.Errorf("with %s: %v", name, err)
		}
	}
}

// TestOnePersonBeyondTheLoopback checks that a proxy in single mode may listen beyond the
// loopback if networks or keys are set, in each form that a file may use.
func TestOnePersonBeyondTheLoopback(t *testing.T) {
	for name, file := range map[string]string{
		"networks in one line": "listen: 0.0.0.0:8787\nlisten.allow: [172.16.0.0/12, 192.0.2.7]\n",
		"keys":                 "listen: 0.0.0.0:8787\nclient:\n  keys: [my-key]\n",
	} {
		c, err := load(t, file, nil, nil)
		if err != nil {
			t.Errorf("%s: Load failed: %v", name, err)
			continue
		}
		if got := fmt.Sprint(c.Networks(func(err error) { t.Error(err) })); name != "keys" && got != "[172.16.0.0/12 192.0.2.7/32]" {
			t.Errorf("%s: got networks %s, want [172.16.0.0/12 192.0.2.7/32]", name, got)
		}
	}
	c, err := load(t, "listen:\n  allow: [172.16.0.0/12]\n", []string{"GRAPHITI_PROXY_LISTEN=0.0.0.0:8787"}, nil)
	if err != nil || len(c.Allow) != 1 {
		t.Errorf("networks below listen: %+v, %v", c, err)
	}
}

// TestSecretsFromFiles checks that secrets can come from files, that line endings are
// removed, and that an empty file is an error.
func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	c, err := load(t, "admin:\n  token: another\n", []string{
		"GRAPHITI_PROXY_ADMIN_TOKEN_FILE=" + file("token", "s3cret, with a comma\n"),
		"GRAPHITI_PROXY_CLIENT_KEYS_FILE=" + file("keys", "one\ntwo\r\n\n"),
	}, nil)
	if err != nil || c.Admin.Token != "s3cret, with a comma" || !slices.Equal(c.Client.Keys, []string{"one", "two"}) {
		t.Errorf("got %+v, %v; want the secrets of the files", c, err)
	}
	if _, err := load(t, "", []string{"GRAPHITI_PROXY_ADMIN_TOKEN_FILE=" + file("empty", "\n")}, nil); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Error(err)
	}
}

// TestConsentCountsForItsEndpoint checks that consent counts for its own endpoint and for
// no other.
func TestConsentCountsForItsEndpoint(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.yaml")
	must(t, os.WriteFile(file, []byte("memory:\n  backend: graphiti\n  endpoint: http://127.0.0.1:1\n  consent: true\n"), 0o600))
	const consent = "GRAPHITI_PROXY_MEMORY_CONSENT="
	for _, tc := range []struct {
		name  string
		env   []string
		flags map[string]string
		want  bool
		other string
	}{
		{"in the file", nil, nil, true, ""},
		{"the same endpoint elsewhere", []string{"GRAPHITI_URL=http://127.0.0.1:1/"}, nil, true, ""},
		{"another endpoint elsewhere", []string{"GRAPHITI_URL=http://127.0.0.1:2"}, nil, false, "http://127.0.0.1:1"},
		{"both in the environment", []string{"GRAPHITI_URL=http://127.0.0.1:2", consent + "true"}, nil, true, ""},
		{"true without an endpoint", []string{consent + "true"}, nil, false, ""},
		{"true for another source's endpoint", []string{"GRAPHITI_URL=http://127.0.0.1:2", consent + "true"}, map[string]string{"memory.endpoint": "http://127.0.0.1:3"}, false, "http://127.0.0.1:2"},
		{"the address itself", []string{consent + "http://127.0.0.1:3"}, map[string]string{"memory.endpoint": "http://127.0.0.1:3"}, true, ""},
		{"another address", []string{consent + "http://127.0.0.1:4"}, nil, false, "http://127.0.0.1:4"},
		{"withdrawn", []string{consent + "false"}, nil, false, ""},
	} {
		cfg, err := Load(Sources{File: file, Env: append(tc.env, "HOME="+dir), Flags: tc.flags})
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if cfg.Consented() != tc.want || cfg.ConsentFor() != tc.other {
			t.Errorf("%s: got %v, for %q; want %v, for %q", tc.name, cfg.Consented(), cfg.ConsentFor(), tc.want, tc.other)
		}
	}
}

// reference writes the table of all settings for the documentation.
func reference(w io.Writer) {
	fmt.Fprint(w, "| key | default | meaning |\n| --- | --- | --- |\n")
	for _, f := range new(Config).fields() {
		doc, def := f.about(), "empty"
		if f.def != "" {
			def = "`" + f.def + "`"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", f.key, def, doc)
	}
}
