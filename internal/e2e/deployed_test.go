//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

var codeBlock = regexp.MustCompile("(?ms)^```[a-z]+\n(.*?)^```$")

// codeBlocks returns the contents of the code blocks of a page.
func codeBlocks(t *testing.T, page string) (blocks []string) {
	t.Helper()
	for _, m := range codeBlock.FindAllStringSubmatch(read(t, page), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no code block", page)
	}
	return blocks
}

// recipeText returns a code block of a recipe, with the address of the proxy.
func recipeText(t *testing.T, page string, block int, url string) string {
	t.Helper()
	text := codeBlocks(t, "../../deploy/recipes/"+page+".md")[block]
	return strings.ReplaceAll(text, "http://127.0.0.1:8787", url)
}

var exported = regexp.MustCompile(`(?m)^export (\w+=[^\s…]+)`)

// exports returns the variables that a recipe exports, except the placeholders for its
// reader.
func exports(t *testing.T, page string, block int, url string) (env []string) {
	t.Helper()
	for _, m := range exported.FindAllStringSubmatch(recipeText(t, page, block, url), -1) {
		env = append(env, m[1])
	}
	if len(env) == 0 {
		t.Fatalf("%s.md exports nothing", page)
	}
	return env
}

var setFlag = regexp.MustCompile(`--set ([a-z_.]+)=(\S+)`)

// settingsIn returns the settings of a documented command as variables, without upstreams.
func settingsIn(t *testing.T, command string) (env []string) {
	t.Helper()
	for _, m := range setFlag.FindAllStringSubmatch(command, -1) {
		if !strings.HasPrefix(m[1], "upstream.") {
			env = append(env, "GRAPHITI_PROXY_"+strings.ToUpper(strings.ReplaceAll(m[1], ".", "_"))+"="+m[2])
		}
	}
	if len(env) == 0 {
		t.Fatalf("no --set in %q", command)
	}
	return env
}

// composition is a Compose file. The tests run its services without containers.
type composition struct {
	Services map[string]struct {
		Command     []string
		Environment map[string]string
		Healthcheck struct{ Test []string }
	}
}

var required = regexp.MustCompile(`\$\{([A-Z0-9_]+)(?::\?[^}]*)?\}`)

// compose reads a Compose file and fills in its variables.
func compose(t *testing.T, file string, variables map[string]string) (c composition) {
	t.Helper()
	text := required.ReplaceAllStringFunc(read(t, file), func(s string) string {
		value, ok := variables[required.FindStringSubmatch(s)[1]]
		if !ok {
			t.Errorf("%s asks for %s, which the test does not set", file, s)
		}
		return value
	})
	if left := strings.Contains(text, "${"); left {
		t.Errorf("%s has a variable with a default: a password or key must be chosen", file)
	}
	must(t, yaml.Unmarshal([]byte(text), &c))
	return c
}

// command returns a service's command, with the values of the other machine replaced.
func (c *composition) command(service string, replaced ...string) (args []string) {
	for _, a := range c.Services[service].Command {
		args = append(args, strings.NewReplacer(replaced...).Replace(a))
	}
	return args
}

// env returns a service's variables, with the addresses of other services replaced.
func (c *composition) env(service string, addresses map[string]string) (env []string) {
	for name, value := range c.Services[service].Environment {
		for from, to := range addresses {
			value = strings.ReplaceAll(value, from, to)
		}
		env = append(env, name+"="+value)
	}
	return env
}

// TestCompose runs the services of compose.yaml with their own variables: the proxy,
// Graphiti's server on Neo4j, and LiteLLM with its configuration. A turn reaches the graph
// through the model names that Graphiti requests from LiteLLM, the next turn recalls it,
// and a forget deletes it.
func TestCompose(t *testing.T) {
	t.Parallel()
	needServer(t)
	c := compose(t, "../../deploy/compose/compose.yaml", map[string]string{
		"ADMIN_TOKEN": "a-token-for-this-test", "GATEWAY_KEY": masterKey, "OPENAI_API_KEY": "sk-provider", "NEO4J_PASSWORD": "a-password-for-this-test",
	})
	chat, err := proxytest.Start()
	must(t, err)
	t.Cleanup(func() { chat.Close() })
	provider := byModel(t, map[string]string{"gpt-5.1": chat.URL() + "/v1"}, startGraphiti(t).url()+"/model")
	if got, want := c.command("litellm"), []string{"--config", "/config.yaml", "--port", "4000"}; !slices.Equal(got, want) {
		t.Errorf("the command of litellm: got %v, want %v, with which the test starts it", got, want)
	}
	lite := liteLLM(t, read(t, "../../deploy/compose/litellm.yaml"), append(c.env("litellm", nil), "OPENAI_BASE_URL="+provider)...)
	addresses := map[string]string{"http://litellm:4000": lite}
	addresses["bolt://neo4j:7687"] = startNeo4j(t)
	graph := startServer(t, c.env("graphiti", addresses)...)
	addresses["http://graphiti:8000"] = graph.url()

	w := serve(t, append(c.env("proxy", addresses), "GRAPHITI_PROXY_LISTEN=127.0.0.1:0", "GRAPHITI_PROXY_ADMIN_LISTEN=127.0.0.1:0",
		"GRAPHITI_PROXY_MEMORY_TIMEOUT=20s")...)
	ask := func(text string) string {
		return send(t, w.url, masterKey, map[string]any{"model": "gpt-5.1", "messages": []any{map[string]any{"role": "user", "content": text}}})
	}
	if got := ask("My cat is called Miso."); got != "Understood, I will keep that in mind." {
		t.Fatalf("through the proxy and LiteLLM: got %q", got)
	}
	w.until(t, "the turn", func(q queue) bool { return q.Verified == 1 })
	if got := ask("What is my cat called?"); !strings.Contains(got, "Miso") {
		t.Errorf("got %q, want the fact that Graphiti extracted", got)
	}
	w.until(t, "the rest", func(q queue) bool { return q.Pending == 0 })

	w.env = append(w.env, "GRAPHITI_PROXY_ADMIN_LISTEN="+strings.TrimPrefix(w.admin, "http://"))
	w.command(t, healthCommand(t)...)
	whose := []string{"--credential", "sha256:" + fingerprint(masterKey)}
	group := groupID.FindString(w.command(t, append([]string{"memory", "list", "--json"}, whose...)...))
	if len(graph.episodes(group)) == 0 {
		t.Errorf("Graphiti's server lists no episode of %q", group)
	}
	if out, err := w.try(append([]string{"memory", "forget", "--yes"}, whose...)...); err != nil && !strings.Contains(out, "deleted here; ") {
		t.Fatalf("forget: %v\n%s", err, out)
	}
	w.eventually(t, "the deletion in Graphiti", func() bool { return len(graph.episodes(group)) == 0 })
	if got := ask("What is my cat called?"); strings.Contains(got, "Miso") {
		t.Errorf("after a forget: got %q, want no fact", got)
	}
}

// healthCommand returns the arguments of the image's health command.
func healthCommand(t *testing.T) (args []string) {
	t.Helper()
	_, line, _ := strings.Cut(read(t, "../../deploy/Dockerfile"), "HEALTHCHECK ")
	line, _, _ = strings.Cut(line[strings.Index(line, "CMD ")+4:], "\n")
	if err := json.Unmarshal([]byte(line), &args); err != nil || len(args) < 2 {
		t.Fatalf("the image's health command: got %q, %v", line, err)
	}
	return args[1:]
}

// byModel starts a provider that forwards each request to the base URL of its model; others
// is the base URL of unlisted models.
func byModel(t *testing.T, of map[string]string, others string) (base string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var request struct{ Model string }
		_ = json.Unmarshal(body, &request)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		to, ok := of[request.Model]
		if !ok {
			to = others
		}
		target, err := url.Parse(to)
		if err != nil {
			t.Error(err)
			return
		}
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }}).ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
