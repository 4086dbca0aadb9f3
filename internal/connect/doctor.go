package connect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Setup is the result of examining a client's settings.
type Setup struct {
	Client   string   `json:"client"`
	Program  string   `json:"program,omitempty"`
	File     string   `json:"file,omitempty"`
	Through  bool     `json:"through"` // requests go through the proxy
	Problems []string `json:"problems,omitempty"`
}

// List returns the clients on this machine: those with a program, or with settings.
func (m *Machine) List() (found []Setup) {
	for _, c := range Clients {
		if s := m.Setup(c); s.Program != "" || s.File != "" {
			found = append(found, s)
		}
	}
	return found
}

// Setup examines one client.
func (m *Machine) Setup(c *Client) Setup {
	s := Setup{Client: c.Name}
	if file := m.File(c); file != "" && exists(file) {
		s.File = file
	}
	if program, err := m.Look(c.Program); err == nil {
		s.Program = program
	}
	s.Through, s.Problems = m.Examine(c)
	return s
}

// Examine reports whether a client's settings lead to the proxy, and why its requests may
// miss it nevertheless.
func (m *Machine) Examine(c *Client) (through bool, problems []string) {
	isProxy := func(url string) bool { return url == m.Proxy.Base || strings.HasPrefix(url, m.Proxy.Base+"/") }
	tree := map[string]any{}
	if c.format != nil {
		var err error
		if tree, err = m.settings(c, ""); err != nil {
			return false, []string{err.Error()}
		}
	}
	for _, v := range c.values(m, tree) {
		value, variable := textAt(tree, v.path...), ""
		if v.Env != "" {
			variable = m.Env(v.Env)
		}
		if variable != "" && (c.EnvWins || c.format == nil || value == "") {
			if isProxy(value) && !isProxy(variable) {
				problems = append(problems, fmt.Sprintf("the variable %s overrides %s: unset it", v.Env, m.File(c)))
			}
			value = variable
		}
		through = through || isProxy(value)
	}
	problems = append(problems, m.projects(c, through, isProxy)...)
	for _, name := range c.Bypass {
		if value := m.Env(name) + textAt(tree, "env", name); value != "" && value != "0" && value != "false" {
			problems = append(problems, name+" selects another API, which does not use the base URL: unset it")
		}
	}
	for _, l := range c.Login {
		text, err := readFile(filepath.Join(m.directory(c), l.File))
		if settings, bad := jsonC.decode(text); err == nil && bad == nil && textAt(settings, strings.Split(l.Path, ".")...) == l.Value {
			problems = append(problems, "it is signed in with "+l.Says+", which uses another API: sign in with an API key")
		}
	}
	return through && len(problems) == 0, problems
}

// projects returns the files of the current directory and its parents that override a
// client's settings.
func (m *Machine) projects(c *Client, through bool, isProxy func(string) bool) (problems []string) {
	for dir := m.Dir; through && dir != "" && dir != m.Home; dir = parent(dir) {
		for _, name := range c.Project {
			file := filepath.Join(dir, filepath.FromSlash(name))
			text, err := readFile(file)
			if err != nil || text == nil || file == m.File(c) {
				continue
			}
			tree, err := c.format.decode(text)
			if err != nil {
				continue
			}
			for _, v := range c.values(m, tree) {
				if value := textAt(tree, v.path...); value != "" && !isProxy(value) || value == "" && c.Replaces {
					problems = append(problems, fmt.Sprintf("%s overrides %s: set %s to the proxy there, or remove it", file, m.File(c), strings.Join(v.path, ".")))
				}
			}
		}
	}
	return problems
}

// parent returns the parent of a directory, or "" for the root.
func parent(dir string) string {
	if up := filepath.Dir(dir); up != dir {
		return up
	}
	return ""
}

// trialTimeout limits a trial: some clients retry for minutes.
const trialTimeout = 90 * time.Second

// CanTry reports whether a client can be started for a trial.
func (m *Machine) CanTry(c *Client) bool {
	_, err := m.Look(c.Program)
	return err == nil && c.Trial != nil
}

// trialDir is the directory of all trials, in Machine.Store. It is one directory, so that a
// trial that was killed leaves one at most. memory import --agents skips its name.
const trialDir = "graphiti-proxy-trial"

// TrialFile returns the file with the ID of a client's last trial request.
func (m *Machine) TrialFile(c *Client) string { return filepath.Join(m.Store, c.Name+".trial") }

// Try sends one short request through a client's own configuration, from an empty
// directory.
func (m *Machine) Try(ctx context.Context, c *Client) error {
	program, err := m.Look(c.Program)
	if err != nil {
		return err
	}
	dir := filepath.Join(m.Store, trialDir)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, ".graphiti-proxy-ignore"), nil, 0o600); err != nil { // the trial is not remembered
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	run := exec.CommandContext(ctx, program, c.Trial...) // #nosec G204 -- a known client
	run.Dir, run.WaitDelay = dir, time.Second
	run.Env = append(run.Environ(), c.Vars...) // Environ sets PWD, which some clients prefer
	out, err := run.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", trialTimeout)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", c.Program, err, reason(out))
	}
	return nil
}

// TakeBack restores the settings from before a plan if the client works with them, and reports
// whether it did.
func (m *Machine) TakeBack(ctx context.Context, p *Plan) (bool, error) {
	if p.Unchanged() {
		return false, nil
	}
	if _, err := m.Disconnect(p.client); err != nil {
		return false, err
	}
	if m.Try(ctx, p.client) == nil {
		return true, nil
	}
	again, err := m.Plan(p.client)
	if err == nil {
		err = m.Apply(again)
	}
	return false, err
}

// reason returns the first line about an error, or the last line, without control
// characters.
func reason(out []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return -1
		}
		return r
	}, string(out))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := lines[len(lines)-1]
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(strings.ToLower(l), "error:") }); i >= 0 {
		line = lines[i]
	}
	short := []rune(line)
	return string(short[:min(len(short), 300)])
}

// Sends reports whether a request with this client name may be the client's.
func (c *Client) Sends(name string) bool { return c.Agent == "" || name == c.Agent }
