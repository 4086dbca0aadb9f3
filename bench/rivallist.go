package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// rivalList are the memories that are played.
var rivalList = []rival{
	{name: "no memory", setup: "the client asks the model directly."},
	{
		name: "graphiti-proxy", setup: "the default settings, and recall.timeout 2s, so that a busy machine costs no answers.",
		start: func(_ string, run *rivalRun) *exec.Cmd { return startProduct(run) },
	},
	{
		name: "graphiti-proxy, facts", setup: "the same with distil.url, distil.after 1s; the model tells each fact once, with half of its keys.",
		facts: true, quiet: 1500 * time.Millisecond,
		start: func(_ string, run *rivalRun) *exec.Cmd {
			return startProduct(run, "GRAPHITI_PROXY_DISTIL_URL="+run.model.url+"/v1", "GRAPHITI_PROXY_DISTIL_MODEL=distiller", "GRAPHITI_PROXY_DISTIL_AFTER=1s", "GRAPHITI_PROXY_MEMORY_CONSENT=true")
		},
	},
	{
		name: "brain-proxy 0.1.96, facts", facts: true, chatOnly: true, tenants: true, newestLast: true, quiet: 200 * time.Millisecond,
		setup: "PyPI, with langchain<1 (else it does not start), as its README starts it; one tenant for each project; every request rewritten for Chat Completions, the only API it has; the model tells each fact once by LangMem's tool; vectors of hashed words. Its clock line does not count.",
		install: func(dir string) error {
			return python(dir, "brain-proxy", "brain-proxy==0.1.96", "langchain<1", "uvicorn")
		},
		installed: func(dir string) string { return filepath.Join(dir, "brain-proxy") },
		start: func(dir string, run *rivalRun) *exec.Cmd {
			here, _ := os.Getwd()                                                                                                                         // the module's root
			cmd := exec.Command(filepath.Join(dir, "brain-proxy", "bin", "python"), filepath.Join(here, "bench", "testdata", "rivals", "brain_proxy.py")) // #nosec G204 -- our own
			cmd.Env = append(os.Environ(), "ADDRESS="+run.address, "UPSTREAM="+run.model.url)
			return cmd
		},
		ignore: regexp.MustCompile(`^Current UTC time is`),
	},
}

func startProduct(run *rivalRun, more ...string) *exec.Cmd {
	cmd := exec.Command(run.binary, "serve") // #nosec G204 -- our own
	cmd.Env = append(append(os.Environ(),
		"HOME="+run.dir, "GRAPHITI_PROXY_DATA_DIR="+filepath.Join(run.dir, "data"), "GRAPHITI_PROXY_LISTEN="+run.address, "GRAPHITI_PROXY_ADMIN_LISTEN="+freeAddress(),
		"GRAPHITI_PROXY_UPSTREAM_OPENAI="+run.model.url, "GRAPHITI_PROXY_UPSTREAM_ANTHROPIC="+run.model.url, "GRAPHITI_PROXY_RECALL_TIMEOUT=2s"), more...)
	return cmd
}

// python installs packages into a virtual environment, unless it is there.
func python(dir, name string, packages ...string) error {
	env := filepath.Join(dir, name)
	done := filepath.Join(env, "installed")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	for _, args := range [][]string{{"python3", "-m", "venv", env}, append([]string{filepath.Join(env, "bin", "pip"), "install", "--quiet"}, packages...)} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil { // #nosec G204 -- our own
			return errors.Join(fmt.Errorf("%s: %w", args[0], err), errors.New(string(out[max(0, len(out)-300):])))
		}
	}
	return os.WriteFile(done, nil, 0o600)
}
