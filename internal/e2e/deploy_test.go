//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// tool runs a checker, which must succeed, and returns its output. It skips the test if the
// checker is not installed.
func tool(t *testing.T, in []byte, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIPPED LOUDLY: %s is not installed; run internal/e2e/install.sh", name)
	}
	cmd := exec.Command(name, args...)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = append(os.Environ(), "PYTHONPATH=.cache/validate")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func validator(t *testing.T) string {
	t.Helper()
	name := filepath.Join(".cache", "validate", "bin", "check-jsonschema")
	if _, err := os.Stat(name); err != nil {
		t.Skip("SKIPPED LOUDLY: check-jsonschema is not installed; run internal/e2e/install.sh where PyPI is reached")
	}
	return name
}

// TestManifestSchemas checks the manifests of Kubernetes and Compose against
// their schemas, and the Dockerfile with a linter.
func TestManifestSchemas(t *testing.T) {
	t.Parallel()
	t.Run("kubernetes", func(t *testing.T) {
		validator(t)
		files := []string{"../../deploy/kubernetes/graphiti-proxy.yaml"}
		for _, base := range []string{"embedded", "replicas"} {
			built := filepath.Join(t.TempDir(), base+".yaml")
			write(t, tool(t, nil, filepath.Join(".cache", "kustomize", "kustomize"), "build", "../../deploy/kubernetes/"+base), built)
			files = append(files, built)
		}
		// An overlay as in deploy/README.md.
		overlay := t.TempDir()
		deploy, err := filepath.Abs("../../deploy/kubernetes")
		if err == nil {
			deploy, err = filepath.Rel(overlay, deploy)
		}
		text := strings.ReplaceAll(codeBlocks(t, "../../deploy/README.md")[1], "https://github.com/graphiti-proxy/graphiti-proxy//deploy/kubernetes", deploy)
		must(t, errors.Join(err, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(strings.ReplaceAll(text, "?ref=main", "")), 0o600)))
		if out := tool(t, nil, filepath.Join(".cache", "kustomize", "kustomize"), "build", overlay); !strings.Contains(out, "kind: ServiceMonitor") || strings.Contains(out, "REGISTRY") {
			t.Errorf("the overlay of deploy/README.md has no ServiceMonitor, or no image:\n%s", out)
		}
		out := tool(t, nil, "python3", append([]string{"validate/kubernetes.py"}, files...)...)
		for _, kind := range []string{"StatefulSet ok", "PodDisruptionBudget ok", "NetworkPolicy ok", "Secret ok", "Service ok", "Ingress ok", "CronJob ok"} {
			if !strings.Contains(out, kind) {
				t.Errorf("no %s:\n%s", kind, out)
			}
		}
		// A validator that accepts everything proves nothing.
		bad := filepath.Join(t.TempDir(), "bad.yaml")
		text = strings.Replace(read(t, "../../deploy/kubernetes/graphiti-proxy.yaml"), "replicas: 1", "replica: 1", 1)
		write(t, text, bad)
		cmd := exec.Command("python3", "validate/kubernetes.py", bad)
		cmd.Env = append(os.Environ(), "PYTHONPATH=.cache/validate")
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("a manifest with a mistake is accepted:\n%s", out)
		}
	})
	t.Run("compose", func(t *testing.T) {
		for _, file := range []string{"compose", "replicas", "open-webui"} {
			tool(t, nil, validator(t), "--builtin-schema", "vendor.compose-spec", "../../deploy/compose/"+file+".yaml")
		}
	})
	t.Run("dockerfile", func(t *testing.T) {
		validator(t)
		lint := filepath.Join(".cache", "validate", "bin", "hadolint")
		tool(t, nil, lint, "../../deploy/Dockerfile")
		bad := filepath.Join(t.TempDir(), "Dockerfile")
		write(t, strings.Replace(read(t, "../../deploy/Dockerfile"), "golang:1.26", "golang", 1), bad)
		if out, err := exec.Command(lint, bad).CombinedOutput(); err == nil {
			t.Errorf("an image without a version is accepted:\n%s", out)
		}
	})
}

// TestPromtool checks the metrics of the binary after a chat, the
// alerts, the scrape configuration and each query of the dashboard with promtool.
func TestPromtool(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.tell(t, "My cat is called Miso.")
	w.until(t, "the turn", func(q queue) bool { return q.Pending == 0 && q.Delivered > 0 })
	w.tell(t, "What is my cat called?")
	resp, err := http.Get(w.admin + "/metrics")
	must(t, err)
	defer resp.Body.Close()
	var metrics bytes.Buffer
	must(t, helptest.ErrorOf(metrics.ReadFrom(resp.Body)))
	tool(t, metrics.Bytes(), "promtool", "check", "metrics")
	tool(t, nil, "promtool", "check", "rules", "../../deploy/prometheus/alerts.yaml")
	tool(t, nil, "promtool", "check", "config", "../../deploy/prometheus/scrape.yaml")

	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	must(t, json.Unmarshal([]byte(read(t, "../../deploy/prometheus/dashboard.json")), &dashboard))
	type rule struct {
		Record, Expr string
	}
	type group struct {
		Name  string
		Rules []rule
	}
	rules := group{Name: "dashboard"}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			rules.Rules = append(rules.Rules, rule{fmt.Sprintf("dashboard:query:%d", len(rules.Rules)), target.Expr})
		}
	}
	text, err := yaml.Marshal(map[string][]group{"groups": {rules}})
	must(t, err)
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	write(t, string(text), path)
	if out := tool(t, nil, "promtool", "check", "rules", path); !strings.Contains(out, "SUCCESS") || len(rules.Rules) < 15 {
		t.Errorf("%d queries: %s", len(rules.Rules), out)
	}
}
