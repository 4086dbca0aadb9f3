package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is one way to the upstream.
type target struct {
	name    string
	address string
	pid     int                     // of the process in between, or 0
	history func(n int) (id string) // names the conversation of request n
	recalls bool                    // it is a proxy with a memory
	blocks  blocks
}

// processes are all processes of the benchmark.
type processes struct {
	targets []*target
	missing []string // notes about omitted targets
	cmds    []*exec.Cmd
	dir     string
}

// startProcesses starts all targets. before is the binary of another version of the proxy,
// or "".
func startProcesses(before string) (*processes, error) {
	p, self, upstream, err := startUpstream()
	if err != nil {
		return p, err
	}
	same := func(int) string { return kept }
	p.targets = append(p.targets, &target{name: "direct", address: upstream, history: same})
	relay := freeAddress()
	pid, err := p.start(relay, nil, self, "role", "relay", relay, upstream)
	if err != nil {
		return p, err
	}
	p.targets = append(p.targets, &target{name: "bare fasthttp relay", address: relay, pid: pid, history: same})
	if err := p.references(upstream, same); err != nil {
		return p, err
	}
	for _, v := range []struct {
		name, binary, backend string
		history               func(int) string
	}{
		{"before: memory off", before, "off", same},
		{"graphiti-proxy, memory off", p.binary(), "off", same},
		{"before: block kept", before, "embedded", same},
		{"graphiti-proxy, block kept", p.binary(), "embedded", same},
		{"graphiti-proxy, every request a new turn", p.binary(), "embedded", func(n int) string { return "number " + strconv.Itoa(n) }},
	} {
		if v.binary == "" {
			continue
		}
		if err := p.proxy(v.name, v.binary, upstream, v.backend, v.history); err != nil {
			return p, err
		}
	}
	return p, nil
}

// startUpstream builds the proxy and starts the upstream.
func startUpstream() (p *processes, self, upstream string, err error) {
	p = &processes{}
	if p.dir, err = os.MkdirTemp("", "graphiti-proxy-bench-"); err != nil {
		return p, "", "", err
	}
	if out, err := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", p.binary(), "./cmd/graphiti-proxy").CombinedOutput(); err != nil { // #nosec G204 -- our own
		return p, "", "", fmt.Errorf("build the proxy (run from the module's root): %w\n%s", err, out)
	}
	if self, err = os.Executable(); err != nil {
		return p, "", "", err
	}
	upstream = freeAddress()
	_, err = p.start(upstream, nil, self, "role", "upstream", upstream)
	return p, self, upstream, err
}

func (p *processes) binary() string { return filepath.Join(p.dir, "graphiti-proxy") }

// proxy starts a proxy as another target.
func (p *processes) proxy(name, binary, upstream, backend string, history func(int) string, env ...string) error {
	address := freeAddress()
	pid, err := p.start(address, append([]string{
		"GRAPHITI_PROXY_LISTEN=" + address, "GRAPHITI_PROXY_ADMIN_LISTEN=off", "GRAPHITI_PROXY_MEMORY_BACKEND=" + backend,
		"GRAPHITI_PROXY_UPSTREAM_OPENAI=http://" + upstream, "GRAPHITI_PROXY_DATA_DIR=" + filepath.Join(p.dir, strconv.Itoa(len(p.cmds))),
		"GRAPHITI_PROXY_LOG_LEVEL=warn",
	}, append(env, unhurried(history)...)...), binary, "serve")
	if err != nil {
		return err
	}
	t := &target{name: name, address: address, pid: pid, history: history, recalls: backend == "embedded"}
	p.targets = append(p.targets, t)
	if t.recalls {
		return teach(t)
	}
	return nil
}

// unhurried returns the settings of a proxy that repeats one turn. That turn's only search
// must not time out, even on a busy machine.
func unhurried(history func(int) string) []string {
	if history(1) != kept {
		return nil
	}
	return []string{"GRAPHITI_PROXY_RECALL_TIMEOUT=5s"}
}

// start runs a command and waits until it listens.
func (p *processes) start(address string, env []string, name string, args ...string) (int, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	p.cmds = append(p.cmds, cmd)
	for range 500 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return cmd.Process.Pid, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s does not listen on %s", name, address)
}

func (p *processes) stop() {
	for _, c := range p.cmds {
		if c.Process.Signal(syscall.SIGTERM) != nil { // nginx ends its workers
			_ = c.Process.Kill()
		}
		killed := time.AfterFunc(time.Second, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		killed.Stop()
	}
	p.cmds = nil
	_ = os.RemoveAll(p.dir)
}

func freeAddress() string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// pids returns the target's processes: nginx has one for each worker.
func (t *target) pids() []int {
	if t.pid == 0 {
		return nil
	}
	return withChildren(t.pid)
}

func withChildren(pid int) []int {
	all := []int{pid}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid)) // it may have none
	for _, child := range bytes.Fields(b) {
		if n, err := strconv.Atoi(string(child)); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// cpu returns the processor time that the target has used, in nanoseconds.
func (t *target) cpu() int64 { return cpuOf(t.pids()) }

func cpuOf(pids []int) (sum int64) {
	for _, pid := range pids {
		// The process's own file covers only its first thread: add up all threads.
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			continue
		}
		for _, f := range tasks {
			b, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			n, _ := strconv.ParseInt(string(bytes.Fields(b)[0]), 10, 64)
			sum += n
		}
	}
	return sum
}

// memory returns the target's resident RAM, in bytes.
func (t *target) memory() (sum int64) {
	for _, pid := range t.pids() {
		sum += resident(pid)
	}
	return sum
}

func resident(pid int) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}
