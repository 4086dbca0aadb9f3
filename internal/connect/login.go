package connect

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Login starts the proxy when the person logs in: a systemd user unit, a launchd agent or a
// Windows task.
type Login struct {
	Program   string     // path of the proxy
	Manager   []string   // succeeds if the service manager answers; nil if it always does
	File      string     // "" if the system stores the task itself
	Text      string     // content of File
	Install   [][]string // commands after File was written
	Uninstall [][]string // commands before File is removed
	Status    []string
	Lingers   []string // answers Linger=no if the service ends with the last session; nil if it does not
}

const (
	unitName  = "graphiti-proxy.service"
	agentName = "com.github.graphiti-proxy"
	taskName  = "graphiti-proxy"
)

// LoginOf returns the service for an operating system. command is the proxy's command line.
func LoginOf(system string, m *Machine, uid int, command []string) (*Login, error) {
	switch system {
	case "linux":
		config := m.Env("XDG_CONFIG_HOME")
		if config == "" {
			config = filepath.Join(m.Home, ".config")
		}
		l := &Login{
			Program:   command[0],
			Manager:   []string{"systemctl", "--user", "show-environment"},
			File:      filepath.Join(config, "systemd", "user", unitName),
			Text:      unit(command),
			Install:   [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "--now", unitName}},
			Uninstall: [][]string{{"systemctl", "--user", "disable", "--now", unitName}},
			Status:    []string{"systemctl", "--user", "--no-pager", "status", unitName},
		}
		if m.Env("SSH_CONNECTION") != "" {
			l.Lingers = []string{"loginctl", "show-user", "--property=Linger", strconv.Itoa(uid)}
		}
		return l, nil
	case "darwin":
		domain := "gui/" + strconv.Itoa(uid)
		file := filepath.Join(m.Home, "Library", "LaunchAgents", agentName+".plist")
		return &Login{
			Program:   command[0],
			Manager:   []string{"launchctl", "print", domain},
			File:      file,
			Text:      agent(command),
			Install:   [][]string{{"launchctl", "bootstrap", domain, file}},
			Uninstall: [][]string{{"launchctl", "bootout", domain + "/" + agentName}},
			Status:    []string{"launchctl", "print", domain + "/" + agentName},
		}, nil
	case "windows":
		var quoted []string
		for _, word := range command {
			quoted = append(quoted, `"`+word+`"`)
		}
		return &Login{
			Program:   command[0],
			Install:   [][]string{{"schtasks", "/Create", "/F", "/TN", taskName, "/SC", "ONLOGON", "/TR", strings.Join(quoted, " ")}, {"schtasks", "/Run", "/TN", taskName}},
			Uninstall: [][]string{{"schtasks", "/End", "/TN", taskName}, {"schtasks", "/Delete", "/F", "/TN", taskName}},
			Status:    []string{"schtasks", "/Query", "/TN", taskName, "/V", "/FO", "LIST"},
		}, nil
	}
	return nil, fmt.Errorf("starting at login is not supported on %s; start graphiti-proxy serve yourself", system)
}

func unit(command []string) string {
	var quoted []string
	for _, word := range command {
		quoted = append(quoted, strconv.Quote(strings.NewReplacer("%", "%%", "$", "$$").Replace(word)))
	}
	return "[Unit]\nDescription=graphiti-proxy, a memory for LLM clients\n\n" +
		"[Service]\nExecStart=" + strings.Join(quoted, " ") + "\nExecReload=/bin/kill -HUP $MAINPID\n" +
		"Restart=on-failure\nRestartSec=1\nTimeoutStopSec=60\nUMask=0077\n\n" +
		"[Install]\nWantedBy=default.target\n"
}

func agent(command []string) string {
	var b bytes.Buffer
	b.WriteString(xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n")
	b.WriteString("<plist version=\"1.0\"><dict>\n<key>Label</key><string>" + agentName + "</string>\n<key>ProgramArguments</key><array>\n")
	for _, word := range command {
		b.WriteString("<string>")
		_ = xml.EscapeText(&b, []byte(word)) // a buffer
		b.WriteString("</string>\n")
	}
	b.WriteString("</array>\n<key>RunAtLoad</key><true/>\n<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n</dict></plist>\n")
	return b.String()
}

// Run executes a command of the operating system.
func Run(ctx context.Context, command []string) (string, error) {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput() // #nosec G204 -- from LoginOf
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, reason(out))
	}
	return string(out), nil
}

// Ready returns an error unless the proxy can start at login from here.
func (l *Login) Ready(ctx context.Context) error {
	if err := l.Managed(ctx); err != nil {
		return err
	}
	for dir := filepath.Dir(l.Program); dir != ""; dir = parent(dir) {
		if name := filepath.Base(dir); name == "_npx" || name == ".cache" || exists(filepath.Join(dir, "CACHEDIR.TAG")) {
			return fmt.Errorf("%s is in a cache and may disappear; install it first: npm install --global graphiti-proxy, or uv tool install graphiti-proxy", l.Program)
		}
	}
	return nil
}

// Managed returns an error if the service manager does not answer.
func (l *Login) Managed(ctx context.Context) error {
	if l.Manager == nil {
		return nil
	}
	if _, err := Run(ctx, l.Manager); err != nil {
		return fmt.Errorf("no user service manager answers here; run graphiti-proxy serve yourself: %w", err)
	}
	return nil
}

// EndsWithSession reports whether the service ends with the person's last session.
func (l *Login) EndsWithSession(ctx context.Context) bool {
	if l.Lingers == nil {
		return false
	}
	out, err := Run(ctx, l.Lingers)
	return err == nil && strings.Contains(out, "Linger=no")
}

// Start installs the service and starts the proxy. If it fails, it removes a new file.
func (l *Login) Start(ctx context.Context) error {
	if err := l.Ready(ctx); err != nil {
		return err
	}
	isNew := l.File != "" && !exists(l.File)
	if l.File != "" {
		if err := os.MkdirAll(filepath.Dir(l.File), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(l.File, []byte(l.Text), 0o600); err != nil {
			return err
		}
	}
	for _, command := range l.Install {
		if _, err := Run(ctx, command); err != nil {
			if isNew {
				err = errors.Join(err, os.Remove(l.File))
			}
			return err
		}
	}
	return nil
}

// Stop stops the proxy and removes the service. Without a service manager, there is only a
// file to remove.
func (l *Login) Stop(ctx context.Context) error {
	if l.File != "" && !exists(l.File) {
		return errors.New("the service is not installed")
	}
	var failed error
	if l.Managed(ctx) == nil {
		for _, command := range l.Uninstall {
			_, err := Run(ctx, command)
			failed = errors.Join(failed, err)
		}
	}
	if l.File != "" {
		failed = errors.Join(failed, os.Remove(l.File))
	}
	return failed
}
