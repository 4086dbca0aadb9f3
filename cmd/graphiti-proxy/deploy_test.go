package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestDeployUsesMetricsThatExist checks that the proxy has every metric that the alerts and
// the dashboard use.
func TestDeployUsesMetricsThatExist(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	w.say("My cat is called Miso.")
	w.delivered(1)
	w.say("What is my cat called?")
	streamed(t, w)
	resp, err := w.client.Get("http://" + w.app.admin.Addr().String() + "/metrics")
	b := helptest.Body(t, resp, err)
	name := regexp.MustCompile(`\b(?:graphiti_proxy|process)_[a-z_]+`)
	there := make(map[string]bool)
	for _, n := range seldom {
		there[n] = true
	}
	for _, n := range name.FindAllString(string(b), -1) {
		there[n] = true
	}
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		text := helptest.File(t, filepath.Join("..", "..", "deploy", "prometheus", file))
		used := name.FindAllString(string(text), -1)
		if len(used) == 0 {
			t.Errorf("%s uses no metrics", file)
		}
		for _, n := range used {
			if !there[n] {
				t.Errorf("%s asks for %s, which is not there", file, n)
			}
		}
		if file == "dashboard.json" && !json.Valid(text) {
			t.Errorf("%s is not JSON", file)
		}
	}
}

// TestDeployIsValid checks that the manifests are YAML, that every setting in them exists,
// that configurations in them load, and that systemd accepts the unit, if systemd-analyze
// is installed.
func TestDeployIsValid(t *testing.T) {
	t.Parallel()
	deploy := filepath.Join("..", "..", "deploy")
	settings := regexp.MustCompile(`GRAPHITI_PROXY_[A-Z_]+`)
	known := make(map[string]bool)
	reference := helptest.File(t, filepath.Join("..", "..", "docs", "configuration.md"))
	for _, key := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)`").FindAllStringSubmatch(string(reference), -1) {
		known["GRAPHITI_PROXY_"+strings.ToUpper(strings.ReplaceAll(key[1], ".", "_"))] = true
	}
	for _, file := range []string{"compose/compose.yaml", "compose/replicas.yaml", "compose/open-webui.yaml", "compose/litellm.yaml", "kubernetes/graphiti-proxy.yaml", "kubernetes/replicas/replicas.yaml", "kubernetes/replicas/backup.yaml", "kubernetes/embedded/embedded.yaml", "kubernetes/common/common.yaml", "kubernetes/monitoring/servicemonitor.yaml", "prometheus/alerts.yaml", "prometheus/scrape.yaml", "prometheus/scrape-kubernetes.yaml", "Dockerfile", "systemd/graphiti-proxy.service"} {
		b := helptest.File(t, filepath.Join(deploy, file))
		for _, s := range settings.FindAllString(string(b), -1) {
			if !known[strings.TrimSuffix(s, "_FILE")] {
				t.Errorf("%s sets %s, which is no setting", file, s)
			}
		}
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		d := yaml.NewDecoder(strings.NewReader(string(b)))
		for {
			var doc map[string]any
			err := d.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
				break
			}
			if data, ok := doc["data"].(map[string]any); ok && doc["kind"] == "ConfigMap" { // holds a configuration
				dir := t.TempDir()
				text, _ := data["config.yaml"].(string)
				file := filepath.Join(dir, "config.yaml")
				writeFile(t, file, text)
				env := []string{"HOME=" + dir, "GRAPHITI_PROXY_ADMIN_TOKEN=x"}
				if strings.Contains(string(b), "postgres-url") {
					env = append(env, "GRAPHITI_PROXY_STATE_POSTGRES_URL=postgres://x/y")
				}
				if _, err := config.Load(config.Sources{Env: env, File: file}); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("SKIPPED LOUDLY: systemd-analyze is not here to check the unit")
		return
	}
	unit := helptest.File(t, filepath.Join(deploy, "systemd", "graphiti-proxy.service"))
	// The binary that the unit names need not exist on this machine.
	path := filepath.Join(t.TempDir(), "graphiti-proxy.service")
	writeFile(t, path, strings.ReplaceAll(string(unit), "/usr/bin/graphiti-proxy", "/bin/true"))
	if out, err := exec.Command("systemd-analyze", "verify", path).CombinedOutput(); err != nil || strings.Contains(string(out), "Unknown") {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// TestReplicasKeepTheirVolumes checks that every replica has a volume of its own, which
// outlives it. In Kubernetes, a preStop hook delays its end until the load balancer has
// dropped it.
func TestReplicasKeepTheirVolumes(t *testing.T) {
	t.Parallel()
	guide := helptest.File(t, filepath.Join("..", "..", "deploy", "README.md"))
	for _, name := range []string{"kubernetes/graphiti-proxy.yaml", "kubernetes/replicas/replicas.yaml"} {
		found := false
		for _, doc := range manifests(t, name) {
			if doc["kind"] != "StatefulSet" {
				continue
			}
			found = true
			container := at(doc, "spec", "template", "spec", "containers").([]any)[0]
			if at(container, "lifecycle", "preStop") == nil || at(container, "readinessProbe", "timeoutSeconds") != 3 {
				t.Errorf("%s: got %v, want a preStop hook and a readiness probe of 3 seconds", name, container)
			}
			// No registry has this image: the guide replaces its name.
			if image := at(container, "image"); image != "REGISTRY/graphiti-proxy:VERSION" || !strings.Contains(string(guide), "s#"+image.(string)+"#$IMAGE#") {
				t.Errorf("%s: deploy/README.md does not replace the image %v", name, image)
			}
			if n, _ := at(doc, "spec", "replicas").(int); n > 1 && at(doc, "spec", "volumeClaimTemplates") == nil {
				t.Errorf("%s: its replicas have no volumes", name)
			}
		}
		if !found {
			t.Errorf("%s is no StatefulSet", name)
		}
		for _, doc := range manifests(t, name) {
			if out, _ := at(doc, "spec", "egress").([]any); doc["kind"] == "NetworkPolicy" && len(out) < 3 {
				t.Errorf("%s: got %v, want at least 3 rules of egress", name, out)
			}
		}
	}
	volumes := make(map[any]string)
	services, _ := at(manifests(t, "compose/replicas.yaml")[0], "services").(map[string]any)
	base, _ := at(manifests(t, "compose/compose.yaml")[0], "services").(map[string]any)
	services["the first"] = base["proxy"]
	for name, s := range services {
		list, _ := at(s, "volumes").([]any)
		if len(list) == 0 || name == "postgres" {
			continue
		}
		if other, taken := volumes[list[0]]; taken {
			t.Errorf("%s and %s share %v", name, other, list[0])
		}
		volumes[list[0]] = name
		if at(s, "environment", "GRAPHITI_PROXY_UPSTREAM_ANTHROPIC") != "http://litellm:4000" {
			t.Errorf("%s sends LiteLLM's key elsewhere", name)
		}
	}
	if len(volumes) != 3 {
		t.Errorf("got %v, want 3 of them", volumes)
	}
}

// TestCompositionIsSafe: no service is reachable from other machines, no password has a
// default, and each image has a version.
func TestCompositionIsSafe(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`:v?\d+\.\d+`)
	for _, name := range []string{"compose.yaml", "replicas.yaml", "open-webui.yaml"} {
		b := helptest.File(t, filepath.Join("..", "..", "deploy", "compose", name))
		var file struct {
			Services map[string]struct {
				Image string
				Ports []string
			}
		}
		must(t, yaml.Unmarshal(b, &file))
		if len(file.Services) < 2 {
			t.Errorf("%s: got %d services, want at least 2", name, len(file.Services))
		}
		for service, s := range file.Services {
			if s.Image != "" && !version.MatchString(s.Image) {
				t.Errorf("%s: the image %s has no version", name, s.Image)
			}
			for _, p := range s.Ports {
				if !strings.HasPrefix(p, "127.0.0.1:") {
					t.Errorf("%s: %s publishes port %s to other machines", name, service, p)
				}
			}
		}
		if variable := regexp.MustCompile(`\$\{[A-Z0-9_]+:-[^}]*\}`).FindString(string(b)); variable != "" {
			t.Errorf("%s: %s has a default, want a required value", name, variable)
		}
	}
}

// TestKubernetesBasesAreComplete checks that each Kustomize base has the objects that a cluster needs, that
// the component for Prometheus selects the admin side, and that the proxy reads its secrets from
// files, which change without a restart.
func TestKubernetesBasesAreComplete(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"embedded": "ConfigMap/graphiti-proxy Ingress/graphiti-proxy NetworkPolicy/graphiti-proxy PersistentVolumeClaim/graphiti-proxy PersistentVolumeClaim/graphiti-proxy-backups PodDisruptionBudget/graphiti-proxy Secret/graphiti-proxy Service/graphiti-proxy Service/graphiti-proxy-admin ServiceMonitor/graphiti-proxy StatefulSet/graphiti-proxy",
		"replicas": "ConfigMap/graphiti-proxy CronJob/graphiti-proxy-backup Ingress/graphiti-proxy NetworkPolicy/graphiti-proxy PersistentVolumeClaim/graphiti-proxy-backups PodDisruptionBudget/graphiti-proxy Secret/graphiti-proxy Service/graphiti-proxy Service/graphiti-proxy-admin ServiceMonitor/graphiti-proxy StatefulSet/graphiti-proxy",
	} {
		objects := make(map[string]any)
		resourcesOf(t, base, objects)
		resourcesOf(t, "monitoring", objects)
		if got := strings.Join(slices.Sorted(maps.Keys(objects)), " "); got != want {
			t.Errorf("%s: got %s, want %s", base, got, want)
		}
		if admin, monitor := objects["Service/graphiti-proxy-admin"], objects["ServiceMonitor/graphiti-proxy"]; !reflect.DeepEqual(at(admin, "metadata", "labels"), at(monitor, "spec", "selector", "matchLabels")) ||
			at(at(admin, "spec", "ports").([]any)[0], "name") != at(at(monitor, "spec", "endpoints").([]any)[0], "port") {
			t.Errorf("%s: the ServiceMonitor does not select the admin side", base)
		}
		container := at(objects["StatefulSet/graphiti-proxy"], "spec", "template", "spec", "containers").([]any)[0]
		files := make(map[string]bool)
		for _, v := range at(container, "env").([]any) {
			if at(v, "valueFrom") != nil {
				t.Errorf("%s: %v changes only with a restart", base, at(v, "name"))
			}
			if dir, file := filepath.Split(at(v, "value").(string)); dir == "/run/secrets/graphiti-proxy/" {
				files[file] = true
			}
		}
		for key := range at(objects["Secret/graphiti-proxy"], "stringData").(map[string]any) {
			if !files[key] {
				t.Errorf("%s: the proxy does not read the secret %s from a file", base, key)
			}
		}
	}
}

// resourcesOf adds the objects of a Kustomize folder to a map, by kind and name.
func resourcesOf(t *testing.T, folder string, objects map[string]any) {
	t.Helper()
	for _, resource := range at(manifests(t, "kubernetes/"+folder+"/kustomization.yaml")[0], "resources").([]any) {
		name := path.Join(folder, resource.(string))
		if path.Ext(name) != ".yaml" {
			resourcesOf(t, name, objects)
			continue
		}
		for _, doc := range manifests(t, "kubernetes/"+name) {
			objects[fmt.Sprint(doc["kind"], "/", at(doc, "metadata", "name"))] = doc
		}
	}
}

// manifests returns the documents of a file below deploy.
func manifests(t *testing.T, name string) (all []map[string]any) {
	t.Helper()
	b := helptest.File(t, filepath.Join("..", "..", "deploy", name))
	for d := yaml.NewDecoder(strings.NewReader(string(b))); ; {
		var doc map[string]any
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, doc)
	}
}

// at returns the value at a path of a document, or nil.
func at(doc any, path ...string) any {
	for _, p := range path {
		m, _ := doc.(map[string]any)
		doc = m[p]
	}
	return doc
}
