package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newServeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the proxy",
		Long: "Run the proxy until Ctrl-C or SIGTERM. It then takes no more requests, lets\n" +
			"running streams finish within shutdown_grace, and keeps undelivered turns on disk\n" +
			"for the next start. SIGHUP reloads the configuration.",
		Example: "  graphiti-proxy serve\n  graphiti-proxy serve --listen 127.0.0.1:9000 --upstream https://openrouter.ai/api",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := cli.LoadConfig(c)
			if err != nil {
				return err
			}
			return serve(c.Context(), c.OutOrStdout(), cli.FileLine(c, cfg), cfg, func() (*config.Config, error) { return cli.LoadConfig(c) })
		},
	}
	cli.ServeFlags(c)
	return c
}

// serve serves until a signal. settings says where they come from, and read reads
// them again.
func serve(ctx context.Context, out io.Writer, settings string, cfg *config.Config, read func() (*config.Config, error)) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)

	budget.LimitHeap()
	level := new(slog.LevelVar)
	setLevel(level, cfg)
	log := telemetry.NewLogger(os.Stderr, cfg.Log.Format, level)
	log.Info("settings", "file", settings)
	a, err := beginApp(ctx, cfg, log)
	if err != nil {
		return err
	}
	for _, note := range cfg.Notes() {
		log.Info("a setting is used otherwise than it was written", "note", note)
	}
	if cfg.Log.Format != "text" && !terminal.Is(os.Stderr) || cfg.Log.Format == "json" {
		begun(log, a)
	}
	if cfg.Log.Format != "json" {
		banner(out, settings, cli.Called(os.Args[0]), a)
	}
	served := make(chan error, 1)
	// They end with Shutdown below, and with ctx.
	go func() { served <- a.Serve() }()
	go budget.Rest(ctx)
	a.memory.warm(ctx)
	for {
		select {
		case err := <-served:
			return errors.Join(err, a.Shutdown(context.Background()))
		case <-hup:
			reload(a, level, read, log)
			continue
		case <-ctx.Done():
		}
		break
	}
	stop() // a second Ctrl-C ends the process at once
	patience := a.live.Load().ShutdownGrace
	log.Info("shutting down, running streams may finish", "grace", patience.String())
	grace, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = a.Shutdown(grace)
	var lost *capture.LostError
	errors.As(err, &lost)
	var stuck *stuckError
	if errors.As(err, &stuck) {
		return err // what serves may hang too
	}
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("streams were cut off at the end of shutdown_grace")
		err = nil
	}
	if lost != nil {
		err = lost // the rest follows from the same disk
	}
	return errors.Join(err, <-served)
}

// beginApp makes the app, unless a signal ends the process before it is there:
// a directory or a service that hangs must not keep it.
func beginApp(ctx context.Context, cfg *config.Config, log *slog.Logger) (*app, error) {
	type made struct {
		app *app
		err error
	}
	done := make(chan made, 1)
	// Ends with what newApp waits for, or with the process.
	go func() {
		a, err := newApp(cfg, log)
		done <- made{a, err}
	}()
	select {
	case m := <-done:
		return m.app, m.err
	case <-ctx.Done():
	}
	select {
	case m := <-done: // it is ended as any other
		return m.app, m.err
	case <-time.After(partBound):
		return nil, fmt.Errorf("stopped before the proxy had begun: a part of it did not start within %s; check that data_dir and state.redis_url can be reached", partBound)
	}
}

// banner says what a person needs to know to use the proxy; command is how they
// call it.
func banner(w io.Writer, settings, command string, a *app) {
	base := a.base()
	fmt.Fprintf(w, `settings: %s
graphiti-proxy %s
  listening on  %s
  forwarding to %s
  memory        %s
  inspector     %s

  point your client at it:
    export OPENAI_BASE_URL=%s/v1
    export ANTHROPIC_BASE_URL=%s
  try it, with your key in OPENAI_API_KEY or ANTHROPIC_API_KEY:
    %s test

`, settings, telemetry.Version(), base, cli.UpstreamLine(a.cfg.Upstreams()), a.memoryLine(), a.inspector(), base, base, command)
}

// base is the address that clients of this machine use.
func (a *app) base() string {
	return address(a.cfg, "client", a.cfg.Listen, a.proxy.Addr())
}

// inspector is where people look at their memory, with a browser of this machine.
func (a *app) inspector() string {
	if a.cfg.Admin.Listen == "off" {
		return "off"
	}
	return address(a.cfg, "admin", a.cfg.Admin.Listen, a.admin.Addr())
}

// listening is where a listener listens: the host that it was set to, which the
// system may spell otherwise, and the port that it has got.
func listening(set string, at net.Addr) string {
	host, _, err := net.SplitHostPort(set)
	_, port, bad := net.SplitHostPort(at.String())
	if err != nil || bad != nil {
		return at.String()
	}
	return net.JoinHostPort(host, port)
}

// address is where a listener is reached from this machine. One that listens on all
// addresses and speaks TLS is reached by a name of its certificate, where that has
// any.
func address(cfg *config.Config, side, set string, at net.Addr) string {
	return reachedAt(cfg, side, listening(set, at))
}

// reachedAt is address, of where the listener listens.
func reachedAt(cfg *config.Config, side, listens string) string {
	host, port, err := net.SplitHostPort(listens)
	reached := cli.Reachable(listens)
	if err != nil {
		return scheme(cfg, side) + reached
	}
	ip := net.ParseIP(host)
	if name := cli.CertificateName(cfg.TLS.Cert); name != "" && cfg.TLSFor(side) && (host == "" || ip != nil && ip.IsUnspecified()) {
		reached = net.JoinHostPort(name, port)
	}
	return scheme(cfg, side) + reached
}

// begun says the same in the log, for who reads that.
func begun(log *slog.Logger, a *app) {
	log.Info("serving", "version", telemetry.Version(), "listen", a.base(), "upstream", a.cfg.Upstream.OpenAI, "memory", a.memoryLine(),
		"openai_base_url", a.base()+"/v1", "anthropic_base_url", a.base(), "inspector", a.inspector())
}

// memoryLine says in a few words which memory is used, or that a file of it
// cannot be.
func (a *app) memoryLine() string {
	line := cli.MemoryLine(a.cfg)
	for i, t := range a.files.NotOpened() {
		if i == 0 {
			line = "OFF, nothing is recalled or kept"
		}
		line += "\n                " + t.What() + "\n                to do: " + t.Remedy
	}
	return line
}

// scheme begins the addresses of a listener, client or admin.
func scheme(cfg *config.Config, listener string) string {
	if cfg.TLSFor(listener) {
		return "https://"
	}
	return "http://"
}

// reload applies a changed configuration. With a mistake in it the old one stays
// in force.
func reload(a *app, level *slog.LevelVar, read func() (*config.Config, error), log *slog.Logger) {
	cfg, err := read()
	var waiting []string
	if err == nil {
		waiting, err = a.reload(cfg)
	}
	if err != nil {
		log.Error("reload configuration failed, the old one stays in force", "error", err)
		return
	}
	setLevel(level, cfg)
	attrs := []any{"file", cfg.File()}
	if len(waiting) > 0 {
		attrs = append(attrs, "need_a_restart", waiting)
	}
	log.Info("reloaded configuration", attrs...)
}

func setLevel(level *slog.LevelVar, cfg *config.Config) {
	_ = level.UnmarshalText([]byte(cfg.Log.Level)) // checked when it was read
}
