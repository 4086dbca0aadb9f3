package main

import (
	"errors"
	"fmt"
	"net"
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
		name: "graphiti-proxy with facts", setup: "the same with distil.url, distil.after 1s; the model tells each fact once, with half of its keys.",
		facts: true, quiet: 1500 * time.Millisecond,
		start: func(_ string, run *rivalRun) *exec.Cmd {
			return startProduct(run, "GRAPHITI_PROXY_DISTIL_URL="+run.model.url+"/v1", "GRAPHITI_PROXY_DISTIL_MODEL=distiller", "GRAPHITI_PROXY_DISTIL_AFTER=1s", "GRAPHITI_PROXY_MEMORY_CONSENT=true")
		},
	},
	{
		name: "brain-proxy with facts", facts: true, chatOnly: true, tenants: true, newestLast: true, quiet: 200 * time.Millisecond,
		setup: "0.1.96 of PyPI, with langchain<1 and langchain-community (else it does not start), as its README starts it; one tenant for each project; every request rewritten for Chat Completions, the only API it has; the model tells each fact once by LangMem's tool; vectors of graphiti-proxy's own encoder. Its clock line does not count.",
		install: func(dir string) error {
			return python(dir, "brain-proxy", "brain-proxy==0.1.96", "langchain<1", "langchain-community<0.4", "uvicorn")
		},
		installed: func(dir string) string { return filepath.Join(dir, "brain-proxy") },
		start: func(dir string, run *rivalRun) *exec.Cmd {
			here, _ := os.Getwd()                                                                                                                               // the module's root
			cmd := exec.Command(filepath.Join(dir, "brain-proxy", "bin", "python"), filepath.Join(here, "bench", "testdata", "rivals", "serve_brain_proxy.py")) // #nosec G204 -- our own
			cmd.Env = append(os.Environ(), "ADDRESS="+run.address, "UPSTREAM="+run.model.url)
			return cmd
		},
		ignore: regexp.MustCompile(`^Current UTC time is`),
	},
	{
		name: "headroom", setup: "0.42.0 of PyPI, with its proxy and memory.",
		install: func(string) error { return errors.New("it installs 6 GB, and the machine has not the room") },
	},
	{
		name: "OmniRoute", model: "s/m", quiet: 200 * time.Millisecond,
		setup:     "3.7.9 of npm, its server without the launcher, with the default memory (on, hybrid, 2,000 tokens), one API key, and an OpenAI-compatible provider; its queue (100 requests a minute, 200 ms apart) lifted; functions that it calls and Node 20 lacks added. It stores nothing with a model.",
		install:   npm("omniroute", "omniroute@3.7.9"),
		installed: func(dir string) string { return filepath.Join(dir, "omniroute") },
		start: func(dir string, run *rivalRun) *exec.Cmd {
			_, port, _ := net.SplitHostPort(run.address)
			here, _ := os.Getwd()                                                                                                                        // the module's root
			cmd := exec.Command("node", "--require", filepath.Join(here, "bench", "testdata", "rivals", "omniroute.cjs"), omniApp(dir, "server-ws.mjs")) // #nosec G204 -- our own
			cmd.Env = append(os.Environ(), "HOME="+run.dir, "DATA_DIR="+filepath.Join(run.dir, "data"), "PORT="+port, "HOSTNAME=127.0.0.1", "NODE_ENV=production", "INITIAL_PASSWORD=stand-in")
			return cmd
		},
		configure: configureOmniRoute,
	},
}

func omniApp(dir, name string) string {
	return filepath.Join(dir, "omniroute", "node_modules", "omniroute", "app", name)
}

// configureOmniRoute adds the stand-in as a provider, by OmniRoute's own API.
func configureOmniRoute(run *rivalRun) error {
	var err error
	for range 60 { // it listens before it is ready
		if _, err = run.post("POST", "/api/auth/login", object{"password": "stand-in"}); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	if err != nil {
		return err
	}
	node, err := run.post("POST", "/api/provider-nodes", object{"name": "stand-in", "prefix": "s", "apiType": "chat", "baseUrl": run.model.url + "/v1", "type": "openai-compatible"})
	if err != nil {
		return err
	}
	id := node["node"].(object)["id"]
	if _, err = run.post("POST", "/api/providers", object{"provider": id, "apiKey": "none", "name": "stand-in"}); err != nil {
		return err
	}
	if _, err = run.post("PATCH", "/api/resilience", object{"requestQueue": object{"autoEnableApiKeyProviders": false, "requestsPerMinute": 100000, "minTimeBetweenRequestsMs": 0, "concurrentRequests": 10, "maxWaitMs": 120000}}); err != nil {
		return err
	}
	key, err := run.post("POST", "/api/keys", object{"name": "stand-in"})
	if err != nil {
		return err
	}
	run.key, _ = key["key"].(string)
	return nil
}

// npm returns a function that installs packages into a folder once.
func npm(name string, packages ...string) func(string) error {
	return func(dir string) error {
		folder := filepath.Join(dir, name)
		done := filepath.Join(folder, "installed")
		if _, err := os.Stat(done); err == nil {
			return nil
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		cmd := exec.Command("npm", append([]string{"install", "--no-audit", "--no-fund", "--prefix", folder}, packages...)...) // #nosec G204 -- our own
		if out, err := cmd.CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("npm: %w", err), errors.New(string(out[max(0, len(out)-300):])))
		}
		// Its own script does not find the database's program if npm put it elsewhere.
		built := filepath.Join("better-sqlite3", "build", "Release", "better_sqlite3.node")
		if b, err := os.ReadFile(filepath.Join(folder, "node_modules", built)); err == nil {
			to := omniApp(dir, filepath.Join("node_modules", built))
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, b, 0o600)); err != nil {
				return err
			}
		}
		return os.WriteFile(done, nil, 0o600)
	}
}

func startProduct(run *rivalRun, more ...string) *exec.Cmd {
	run.admin = freeAddress()
	cmd := exec.Command(run.binary, "serve") // #nosec G204 -- our own
	cmd.Env = append(append(os.Environ(),
		"HOME="+run.dir, "GRAPHITI_PROXY_DATA_DIR="+filepath.Join(run.dir, "data"), "GRAPHITI_PROXY_LISTEN="+run.address, "GRAPHITI_PROXY_ADMIN_LISTEN="+run.admin,
		"GRAPHITI_PROXY_UPSTREAM_OPENAI="+run.model.url, "GRAPHITI_PROXY_UPSTREAM_ANTHROPIC="+run.model.url, "GRAPHITI_PROXY_RECALL_TIMEOUT=2s"), more...)
	return cmd
}

// python installs packages into a virtual environment once.
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
