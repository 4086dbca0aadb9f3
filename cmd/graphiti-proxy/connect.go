package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/connect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// machineOf returns the machine of a command.
func machineOf(c *cobra.Command, cfg *config.Config) (*connect.Machine, error) {
	env := cli.Variable(c)
	home := env("HOME")
	if runtime.GOOS == "windows" {
		home = env("USERPROFILE")
	}
	if home == "" {
		return nil, errors.New("there is no home directory: set HOME")
	}
	dir, err := filepath.Abs(cli.Dir(c))
	if err != nil {
		return nil, err
	}
	providers, named := cfg.Upstreams(), served(cfg)
	for _, api := range []string{"openai", "anthropic", "gemini"} {
		delete(named, api)
	}
	return &connect.Machine{
		Home: home, Dir: dir, Env: env, Look: exec.LookPath, Store: filepath.Join(cfg.DataDir, "connect"),
		Proxy: connect.Proxy{Base: reachedAt(cfg, "client", cfg.Listen), Providers: providers, Named: named},
	}, nil
}

// machineFor returns the configuration and the machine of a command, and the clients that its
// arguments name.
func machineFor(c *cobra.Command, names []string) (cfg *config.Config, m *connect.Machine, list []*connect.Client, err error) {
	if cfg, err = cli.LoadConfig(c); err == nil {
		m, err = machineOf(c, cfg)
	}
	for _, name := range names {
		client := connect.Find(name)
		if err == nil && client == nil {
			err = cli.Usage(fmt.Errorf("client %q is unknown; write one of %s", name, strings.Join(connect.Names(), ", ")))
		}
		list = append(list, client)
	}
	return cfg, m, list, err
}

func completeClients(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return connect.Names(), cobra.ShellCompDirectiveNoFileComp
}

func newConnectCommand() *cobra.Command {
	var dry, untried, line bool
	c := described("connect")
	c.Long += " Clients: " + strings.Join(connect.Names(), ", ") + "."
	c.Args, c.ValidArgsFunction = cobra.ArbitraryArgs, completeClients
	c.Flags().BoolVar(&dry, "print", false, "print the changes, and change nothing")
	c.Flags().BoolVar(&line, "statusline", false, "show the memory in the status line of Claude Code")
	c.Flags().BoolVar(&untried, "no-trial", false, "send no request")
	cli.JSONFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, m, clients, err := machineFor(c, args)
		if err != nil {
			return err
		}
		if line {
			clients = append(clients, connect.StatusLine)
		}
		if len(clients) == 0 {
			all := m.List()
			return cli.Output(c, map[string]any{"clients": all}, func(w io.Writer) { printClients(w, all) })
		}
		return connectClients(c, cfg, m, clients, dry, untried)
	}
	return c
}

// connectClients plans all changes before it makes the first.
func connectClients(c *cobra.Command, cfg *config.Config, m *connect.Machine, clients []*connect.Client, dry, untried bool) error {
	var plans []*connect.Plan
	for _, client := range clients {
		p, err := m.Plan(client)
		if err != nil {
			return err
		}
		if len(p.Changes) == 0 {
			return fmt.Errorf("%s has a status line of yours; add the command graphiti-proxy statusline to it", p.File)
		}
		plans = append(plans, p)
	}
	if dry {
		return cli.Output(c, map[string]any{"plans": plans}, func(w io.Writer) {
			for _, p := range plans {
				printPlan(w, p)
			}
		})
	}
	running, err := runningProxy(c, cfg, m)
	if err != nil {
		return err
	}
	var failed error
	for i, p := range plans {
		if p.File != "" {
			if p.Unchanged() {
				fmt.Fprintf(c.ErrOrStderr(), "%s goes through the proxy already\n", p.Client)
			} else if p, err = m.Plan(clients[i]); err != nil { // an earlier plan may have changed the file
				return err
			} else if err := m.Apply(p); err != nil {
				return err
			}
		}
		if !cli.WantsJSON(c) {
			printPlan(c.OutOrStdout(), p)
		}
		if p.File == "" || untried || clients[i] == connect.StatusLine {
			continue
		}
		if err := try(c, m, p, clients[i], running); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	fmt.Fprintln(c.ErrOrStderr(), "conversations from before: graphiti-proxy memory import --agents")
	if cli.WantsJSON(c) {
		return errors.Join(failed, terminal.JSON(c.OutOrStdout(), map[string]any{"plans": plans}))
	}
	return failed
}

// runningProxy returns the proxy. Without one it offers to start it at login, because
// clients wait for minutes for a proxy that does not answer.
func runningProxy(c *cobra.Command, cfg *config.Config, m *connect.Machine) (*cli.AdminClient, error) {
	running, err := cli.FindProxyToShow(c.Context(), target(cfg))
	if !errors.Is(err, cli.ErrNoProxy) {
		return running, err
	}
	const unchanged = "%w; no setting was changed, because clients hang without the proxy: %w"
	l, ready := loginOf(c, cfg, m)
	if ready == nil {
		ready = l.Ready(c.Context())
	}
	if ready != nil {
		return nil, fmt.Errorf(unchanged, err, ready)
	}
	agreed, asked := ask(c.ErrOrStderr(), "the proxy does not run; start it now and at each login?")
	if asked != nil || !agreed {
		return nil, fmt.Errorf(unchanged, err, errors.New("start it first with graphiti-proxy service install or graphiti-proxy serve"))
	}
	if err := l.Start(c.Context()); err != nil {
		return nil, err
	}
	for wait := time.Now().Add(10 * time.Second); ; {
		running, err = cli.FindProxyToShow(c.Context(), target(cfg))
		if err == nil || time.Now().After(wait) {
			return running, err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func printPlan(w io.Writer, p *connect.Plan) {
	if p.File == "" {
		fmt.Fprintf(w, "%s has no settings file for this; set the variable where you start it:\n", p.Client)
		for _, change := range p.Changes {
			fmt.Fprintf(w, "  export %s=%s\n", change.Path[0], change.Value)
		}
		return
	}
	fmt.Fprintf(w, "%s: %s\n", p.Client, terminal.Printable(p.File))
	if p.Also != nil {
		defer printPlan(w, p.Also)
	}
	for _, change := range p.Changes {
		was := "not set"
		if change.Old != nil {
			was = *change.Old
		}
		fmt.Fprintf(w, "  %s: %s (before: %s)\n", terminal.Printable(strings.Join(change.Path, ".")), change.Value, terminal.Printable(was))
	}
}

// try sends a trial request and reports whether the proxy saw it.
func try(c *cobra.Command, m *connect.Machine, p *connect.Plan, client *connect.Client, running *cli.AdminClient) error {
	errOut := c.ErrOrStderr()
	if !m.CanTry(client) {
		fmt.Fprintf(errOut, "  %s cannot send a trial request by itself; send one message, and see graphiti-proxy doctor\n", client.Name)
		return nil
	}
	before, err := cli.Ask(c.Context(), running, service.Requests, service.RequestsRequest{Limit: 1})
	if err != nil {
		return err
	}
	fmt.Fprintf(errOut, "  sending a trial request with %s …\n", client.Name)
	tried := m.Try(c.Context(), client)
	seen, err := seenSince(c.Context(), running, client, before.Last)
	if seen != nil {
		err = datadir.WriteFile(m.TrialFile(client), []byte(seen.ID))
	}
	switch {
	case err != nil:
		return err
	case seen != nil && tried == nil && seen.Reason == string(inject.ReasonPlace):
		fmt.Fprintf(errOut, "  ✗ %s\n", connectedOnly)
		return fmt.Errorf("the trial request of %s had no memory", client.Name)
	case seen != nil && tried == nil:
		fmt.Fprintf(errOut, "  ✓ the proxy forwarded its request (status %d); restart the client if it is running\n", seen.Status)
		return nil
	case seen != nil:
		return errors.Join(fmt.Errorf("%s goes through the proxy, but its request failed with status %d: %w", client.Name, seen.Status, tried), takeBack(c, m, p))
	}
	why := ""
	if _, problems := m.Examine(client); len(problems) > 0 {
		why = ": " + strings.Join(problems, "; ")
	}
	failed := fmt.Errorf("no request of %s reached the proxy%s", client.Name, why)
	if tried == nil {
		return fmt.Errorf("%w; the setting stays, graphiti-proxy disconnect %s takes it back", failed, client.Name)
	}
	return errors.Join(failed, tried, takeBack(c, m, p))
}

// takeBack restores the settings of a client whose trial failed, and says so.
func takeBack(c *cobra.Command, m *connect.Machine, p *connect.Plan) error {
	if restored, err := m.TakeBack(c.Context(), p); err != nil {
		return err
	} else if restored {
		return fmt.Errorf("%s works without the proxy, so its settings were restored", p.Client)
	}
	return fmt.Errorf("%s fails without the proxy, too; the setting stays, graphiti-proxy disconnect %s takes it back", p.Client, p.Client)
}

// connectedOnly describes a client whose last request named no known project.
const connectedOnly = "connected, but without memory: this client names no directory on this machine; send the header X-Graphiti-Workspace with its requests, or set workspace.optional to true, and report its version"

// seenSince returns the newest request to a model that a client sent after a number.
func seenSince(ctx context.Context, running *cli.AdminClient, client *connect.Client, number int) (*graphiti.LoggedRequest, error) {
	for wait := time.Now().Add(2 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		p, err := cli.Ask(ctx, running, service.Requests, service.RequestsRequest{After: number, Limit: 100})
		if err != nil {
			return nil, err
		}
		for _, r := range slices.Backward(p.Requests) {
			if r.API != "" && client.Sends(r.Client) {
				return &r, nil
			}
		}
		if time.Now().After(wait) {
			return nil, nil
		}
	}
}

func printClients(w io.Writer, all []connect.Setup) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no known client was found on this machine")
		return
	}
	var t terminal.Table
	t.Row("CLIENT", "THROUGH THE PROXY", "SETTINGS")
	for _, s := range all {
		through := "no"
		if s.Through {
			through = "yes"
		} else if len(s.Problems) > 0 {
			through = "no, see graphiti-proxy doctor " + s.Client
		}
		t.Row(s.Client, through, s.File)
	}
	t.Print(w)
}

func newDisconnectCommand() *cobra.Command {
	var every bool
	c := described("disconnect")
	c.Args, c.ValidArgsFunction = cobra.ArbitraryArgs, completeClients
	c.Flags().BoolVar(&every, "all", false, "disconnect each connected client")
	cli.JSONFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		_, m, clients, err := machineFor(c, args)
		if err != nil {
			return err
		}
		connected := m.Connected()
		switch {
		case every && len(args) > 0:
			return cli.Usage(errors.New("--all selects each connected client: leave out the names"))
		case every:
			clients = connected
		case len(args) == 0 && len(connected) > 0:
			return cli.Usage(fmt.Errorf("%s needs the name of a client, or --all; connected: %s", c.CommandPath(), clientNames(connected)))
		}
		if len(clients) == 0 {
			fmt.Fprintln(c.ErrOrStderr(), "no client is connected")
		}
		all, failed := []connect.Undone{}, error(nil)
		for _, client := range clients {
			done, err := m.Disconnect(client)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			all = append(all, done)
		}
		return errors.Join(failed, cli.Output(c, map[string]any{"restored": all}, func(w io.Writer) {
			for _, done := range all {
				fmt.Fprintf(w, "%s: %s %s\n", done.Client, terminal.Printable(done.File), restored(&done))
			}
		}))
	}
	return c
}

func clientNames(clients []*connect.Client) string {
	var names []string
	for _, c := range clients {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// restored describes the effect of disconnect on a file.
func restored(done *connect.Undone) string {
	switch {
	case done.Gone:
		return "does not exist any more"
	case done.Exact:
		return "has its original bytes again"
	case len(done.Left) == 0:
		return "was changed since; only the base URL was taken out"
	}
	return "was changed since; left alone, because it is not the proxy's address now: " + terminal.Printable(strings.Join(done.Left, ", "))
}

// loginOf returns the service that starts this binary with the file of this command.
func loginOf(c *cobra.Command, cfg *config.Config, m *connect.Machine) (*connect.Login, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := []string{program, "serve"}
	if f := c.Flags().Lookup("config"); f != nil && f.Changed {
		file, err := filepath.Abs(cfg.File())
		if err != nil {
			return nil, err
		}
		command = append(command, "--config", file)
	}
	return connect.LoginOf(runtime.GOOS, m, os.Getuid(), command)
}
