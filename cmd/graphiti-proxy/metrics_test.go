package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// scrape returns the metrics page of a proxy.
func scrape(t *testing.T, w *world) string {
	t.Helper()
	resp, err := w.client.Get("http://" + w.app.admin.Addr().String() + "/metrics")
	b := helptest.Body(t, resp, err)
	return string(b)
}

// metrics returns the type and the help text of each metric of a proxy, by name.
func metrics(t *testing.T, w *world) map[string][2]string {
	t.Helper()
	all := make(map[string][2]string)
	for _, m := range regexp.MustCompile(`(?m)^# HELP (graphiti_proxy_\w+) (.*)\n# TYPE \w+ (\w+)$`).FindAllStringSubmatch(scrape(t, w), -1) {
		all[m[1]] = [2]string{m[3], m[2]}
	}
	return all
}

// streamed sends a streaming request, and returns the metrics once they include it, which
// is after the client has its answer.
func streamed(t *testing.T, w *world) (all map[string][2]string) {
	t.Helper()
	resp, err := w.client.Post("http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"And my dog?"}]}`))
	must(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	for all["graphiti_proxy_first_chunk_delay_seconds"] == [2]string{} {
		all = metrics(t, w)
	}
	return all
}

// TestMetricsAreDocumented checks that docs/metrics.md lists every metric with its type and
// help text, and no other metric. METRICS_TABLE=1 go test -v prints the table.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"proof": "0.01%"})
	w.say("My cat is called Miso.")
	w.delivered(1)
	w.say("What is my cat called?")
	w.say("And what is my cat called now?")
	all := streamed(t, w)
	docs := helptest.File(t, filepath.Join("..", "..", "docs", "metrics.md"))
	var rows []string
	for name, m := range all {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", name, m[0], m[1]))
		if strings.HasSuffix(name, "_total") != (m[0] == "counter") {
			t.Errorf("%s is a %s", name, m[0])
		}
	}
	slices.SortFunc(rows, cmp.Compare)
	if os.Getenv("METRICS_TABLE") != "" {
		t.Log("\n" + strings.Join(rows, "\n"))
	}
	for _, row := range rows {
		if !strings.Contains(string(docs), row+"\n") {
			t.Errorf("docs/metrics.md does not have\n%s", row)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(graphiti_proxy_\\w+)`").FindAllStringSubmatch(string(docs), -1) {
		if _, ok := all[m[1]]; !ok && !slices.Contains(seldom, m[1]) {
			t.Errorf("docs/metrics.md has %s, which is not there", m[1])
		}
	}
}

// seldom lists metrics that exist only after events that TestMetricsAreDocumented does not
// cause.
var seldom = []string{
	"graphiti_proxy_abandoned_requests_total", "graphiti_proxy_repeated_blocks_total",
	"graphiti_proxy_graphiti_healthy", "graphiti_proxy_search_working", "graphiti_proxy_memory_calls_total",
}

// TestAlertsHaveARunbook checks that docs/metrics.md describes every alert, and that the
// scrape configurations define the jobs that the alerts use.
func TestAlertsHaveARunbook(t *testing.T) {
	t.Parallel()
	read := func(path ...string) string {
		t.Helper()
		b := helptest.File(t, filepath.Join(append([]string{"..", ".."}, path...)...))
		return string(b)
	}
	docs, alerts, scrape := read("docs", "metrics.md"), read("deploy", "prometheus", "alerts.yaml"), read("deploy", "prometheus", "scrape.yaml")
	inKubernetes := read("deploy", "prometheus", "scrape-kubernetes.yaml")
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	must(t, yaml.Unmarshal([]byte(alerts), &rules))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if !strings.Contains(docs, "\n### "+r.Alert+"\n") {
				t.Errorf("docs/metrics.md does not say what to do about %s", r.Alert)
			}
			if want := "docs/metrics.md#" + strings.ToLower(r.Alert); !strings.HasSuffix(r.Annotations["runbook_url"], want) {
				t.Errorf("%s does not lead to %s", r.Alert, want)
			}
			if regexp.MustCompile(`(rate|increase)\(graphiti_proxy_\w+`).MatchString(r.Expr) && !regexp.MustCompile(`(rate|increase)\(graphiti_proxy_\w+_total`).MatchString(r.Expr) {
				t.Errorf("%s takes the rate of what is no counter", r.Alert)
			}
			for _, m := range regexp.MustCompile(`job="([^"]+)"`).FindAllStringSubmatch(r.Expr, -1) {
				if job := "job_name: " + m[1] + "\n"; !strings.Contains(scrape, job) || !strings.Contains(inKubernetes, job) {
					t.Errorf("%s asks for the job %s, which a scrape configuration does not have", r.Alert, m[1])
				}
			}
		}
	}
	for _, file := range []string{"graphiti-proxy.yaml"} {
		if k := read("deploy", "kubernetes", file); !strings.Contains(k, `prometheus.io/scrape: "true", prometheus.io/port: "8788"`) || !strings.Contains(inKubernetes, "prometheus_io_scrape") {
			t.Errorf("the pods of %s are not those that scrape-kubernetes.yaml looks for", file)
		}
	}
}
