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
)

// startServer starts Graphiti's own REST server, with variables that name its Neo4j and its
// model.
func startServer(t *testing.T, env ...string) *graphitiService {
	t.Helper()
	_, port, _ := net.SplitHostPort(freePort(t))
	return startOwn(t, port, "/healthcheck", env, "-m", "uvicorn", "graph_service.main:app", "--host", "127.0.0.1", "--port", port, "--log-level", "warning")
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
	must(t, cmd.Start())
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
	must(t, err)
	return path
}

// needServer skips a test if Graphiti's server, Neo4j or Java is missing.
func needServer(t *testing.T) {
	t.Helper()
	for what, path := range map[string]string{"Graphiti's server": ".cache/server/version", "Neo4j": ".cache/neo4j/pom.xml"} {
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
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
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

// end ends a process.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait()
}
