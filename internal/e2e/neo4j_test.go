//go:build e2e

package e2e

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/mcp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// startServer starts Graphiti's own REST server, with variables that name its Neo4j and its
// model.
func startServer(t *testing.T, env ...string) *graphitiService {
	t.Helper()
	_, port, _ := net.SplitHostPort(freePort(t))
	return startOwn(t, port, "/healthcheck", env, "-m", "uvicorn", "graph_service.main:app", "--host", "127.0.0.1", "--port", port, "--log-level", "warning")
}

// startTools starts Graphiti's own MCP server in the same way.
func startTools(t *testing.T, env ...string) *graphitiService {
	t.Helper()
	_, port, _ := net.SplitHostPort(freePort(t))
	files := absolute(t, ".cache/server/mcp_server")
	return startOwn(t, port, "/health", env, filepath.Join(files, "main.py"), "--config", filepath.Join(files, "config", "config.yaml"),
		"--transport", "http", "--host", "127.0.0.1", "--port", port, "--database-provider", "neo4j")
}

// startOwn starts one of Graphiti's servers with Python, and waits for its health endpoint.
func startOwn(t *testing.T, port, health string, env []string, args ...string) *graphitiService {
	t.Helper()
	path := []string{absolute(t, ".cache/server/tools"), absolute(t, ".cache/server"), absolute(t, ".cache/graphiti")}
	cmd := exec.Command("python3", append([]string{"-W", "ignore"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), env...), "PYTHONPATH="+strings.Join(path, string(filepath.ListSeparator)), "PYTHONDONTWRITEBYTECODE=1", "GRAPHITI_TELEMETRY_ENABLED=false")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end(cmd)
		if t.Failed() {
			all := said.String()
			t.Logf("Graphiti's server said last:\n%s", all[max(0, len(all)-8000):])
		}
	})
	g := &graphitiService{t: t, port: port}
	until(t, "Graphiti's server", func() bool {
		resp, err := http.Get(g.url() + health)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	return g
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// needServer skips a test if Graphiti's server, Neo4j or Java is missing.
func needServer(t *testing.T) {
	t.Helper()
	for what, path := range map[string]string{"Graphiti's server": ".cache/server/version", "its MCP server": ".cache/server/tools/mcp", "Neo4j": ".cache/neo4j/pom.xml"} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("SKIPPED LOUDLY: %s is not installed; run internal/e2e/install.sh where PyPI and Maven Central are reached", what)
		}
	}
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("SKIPPED LOUDLY: there is no Java to run Neo4j with")
	}
}

// startNeo4j starts a database that ends with the test, and returns its address.
func startNeo4j(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("java", "-Xmx512m", "-cp", filepath.Join(".cache", "neo4j", "jars", "*"), filepath.Join("graphiti", "neo4j", "Database.java"), t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		end(cmd)
	})
	for s := bufio.NewScanner(out); s.Scan(); {
		if strings.HasPrefix(s.Text(), "bolt://") {
			return s.Text()
		}
	}
	t.Fatal("Neo4j did not start")
	return ""
}

// TestRealGraphitiForgetWithoutModel checks a forget while the model of Graphiti's MCP
// server refuses every call. The server deletes the message, but not the summaries with its
// words, and reports success. The proxy then reports that summaries may remain, also after
// a second forget. A forget of the group deletes them.
func TestRealGraphitiForgetWithoutModel(t *testing.T) {
	t.Parallel()
	needServer(t)
	model := startGraphiti(t)
	g := startTools(t, "NEO4J_URI="+startNeo4j(t), "NEO4J_USER=neo4j", "NEO4J_PASSWORD=none", "OPENAI_API_KEY=none", "OPENAI_API_URL="+model.url()+"/model", "OPENAI_BASE_URL="+model.url()+"/model")
	w := serve(t, "GRAPHITI_PROXY_MEMORY_BACKEND=graphiti-mcp", "GRAPHITI_PROXY_MEMORY_ENDPOINT="+g.url(), "GRAPHITI_PROXY_MEMORY_CONSENT=true",
		"GRAPHITI_PROXY_IDENTITY_OWNER=user:josh", "GRAPHITI_PROXY_IDENTITY_GROUP_IDS=raw", "GRAPHITI_PROXY_LOG_LEVEL=error", "GRAPHITI_PROXY_MEMORY_TIMEOUT=5s")
	for session, text := range map[string]string{"one": "Project Aurora has the codeword Zanzibar.", "two": "Project Aurora ships on Fridays."} {
		send(t, w.url, "sk-x", map[string]any{"model": "m", "messages": []any{user(text)}}, "X-Graphiti-Session", session)
	}
	w.until(t, "both turns", func(q queue) bool { return q.Verified == 2 && q.Pending == 0 })

	client, err := mcp.New(remote.Options{Endpoint: g.url()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	held := func() (episodes, summaries int) {
		list, err := client.Episodes(t.Context(), "user_josh", 100)
		if err != nil {
			t.Fatal(err)
		}
		entities, err := client.Entities(t.Context(), "user_josh", "Zanzibar", 50)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			episodes += strings.Count(e.Text, "Zanzibar")
		}
		for _, e := range entities {
			summaries += strings.Count(e.Summary, "Zanzibar")
		}
		return episodes, summaries
	}
	forget := func(part map[string]string) (kept bool) {
		status, got := w.api(t, "", "memory/forget", part)
		if status != http.StatusOK {
			t.Errorf("forget %v: got %d %s", part, status, got)
		}
		return strings.Contains(got, "names_kept")
	}
	model.refuse(http.StatusUnauthorized, 0)
	one := map[string]string{"group": "user_josh", "session": "one"}
	done := make(chan bool, 1)
	go func() {
		defer close(done)
		done <- forget(one) // waits until Graphiti, with its model, has processed the turns that it accepted
	}()
	w.eventually(t, "the message to be deleted", func() bool {
		episodes, _ := held()
		return episodes == 0
	})
	model.refuse(0, 0)
	kept := <-done
	if episodes, summaries := held(); episodes > 0 || summaries == 0 || !kept {
		t.Errorf("without the model: got %d episodes and %d summaries with the codeword, and kept: %v, want no episode, a summary, and true", episodes, summaries, kept)
	}
	if !forget(one) {
		t.Error("again, with the model: got a claim that nothing is left, want none, because the summary is left")
	}
	forget(map[string]string{"group": "user_josh"})
	w.eventually(t, "the group to be deleted in Graphiti", func() bool {
		episodes, summaries := held()
		return episodes+summaries == 0
	})
}

// end ends a process.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait()
}
