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
	c := described("serve")
	c.RunE = configured(func(c *cobra.Command, _ []string, cfg *config.Config) error {
		return serve(c.Context(), c.OutOrStdout(), cli.FileLine(cfg), cfg, func() (*config.Config, error) { return cli.LoadConfig(c) })
	})
	cli.ServeFlags(c)
	return c
}

// serve serves until a signal. settings names the source of the settings, and read reads
// them again.
func serve(ctx context.Context, out io.Writer, settings string, cfg *config.Config, read func() (*config.Config, error)) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)

	budget.LimitHeap()
	level := new(slog.LevelVar)
	setLevel(level, cfg)
	log := telemetry.NewLogger(os.Stderr, cfg.Log.Format, level)
	log.Info("settings", "file", settings)
	a, err := newApp(cfg, log)
	if err != nil {
		return err
	}
	// Until now a signal ends the process at once: the start may wait for a directory that hangs.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, note := range cfg.Notes() {
		log.Info("setting adjusted", "note", note)
	}
	if cfg.Log.Format != "text" && !terminal.Is(os.Stderr) || cfg.Log.Format == "json" {
		begun(log, a)
	}
	if cfg.Log.Format != "json" {
		banner(out, settings, a)
	}
	served := make(chan error, 1)
	// It ends with Shutdown below.
	go func() { served <- a.Serve() }()
	a.memory().warm(ctx)
	a.watchSecrets(cfg.SecretFiles(), hup)
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
	stop() // a second Ctrl-C ends the process immediately
	return shutDown(a, served, log)
}

// shutDown lets running streams finish, for a while.
func shutDown(a *app, served <-chan error, log *slog.Logger) error {
	patience := a.live.Load().ShutdownGrace
	log.Info("shutting down, running streams may finish", "grace", patience.String())
	grace, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := a.Shutdown(grace)
	var lost *capture.LostError
	errors.As(err, &lost)
	var stuck *stuckError
	if errors.As(err, &stuck) {
		return err // the servers may hang, too
	}
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("shutdown_grace is over, closed running streams")
		err = nil
	}
	if lost != nil {
		err = lost // the other errors have the same cause on the disk
	}
	return errors.Join(err, <-served)
}

// banner prints the information for the use of the proxy.
func banner(w io.Writer, settings string, a *app) {
	base := a.base()
	fmt.Fprintf(w, `settings: %s
graphiti-proxy %s
  listening on  %s
  forwarding to %s
  memory        %s
  inspector     %s

  connect your client with graphiti-proxy connect, or point it at the proxy:
    export OPENAI_BASE_URL=%s/v1
    export ANTHROPIC_BASE_URL=%s
  try it, with your key in OPENAI_API_KEY or ANTHROPIC_API_KEY:
    graphiti-proxy test

`, settings, telemetry.Version(), base, cli.UpstreamLine(a.cfg.Upstreams()), a.memoryLine(), a.inspector(), base, base)
}

// base returns the address for clients on this machine.
func (a *app) base() string {
	return address(a.cfg, "client", a.cfg.Listen, a.proxy.Addr())
}

// inspector returns the address of the inspector for browsers on this machine, or off.
func (a *app) inspector() string {
	if a.admin == nil {
		return "off"
	}
	return address(a.cfg, "admin", a.cfg.Admin.Listen, a.admin.Addr())
}

// listening returns the address of a listener: its configured host, which the system may
// spell differently, and its actual port.
func listening(set string, at net.Addr) string {
	host, _, err := net.SplitHostPort(set)
	_, port, bad := net.SplitHostPort(at.String())
	if err != nil || bad != nil {
		return at.String()
	}
	return net.JoinHostPort(host, port)
}

// address returns the URL of a listener for this machine. For a listener on all addresses
// with TLS, the host is a name in its certificate, if there is one.
func address(cfg *config.Config, side, set string, at net.Addr) string {
	return reachedAt(cfg, side, listening(set, at))
}

// reachedAt is address for a given listen address.
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

// begun logs the same information.
func begun(log *slog.Logger, a *app) {
	log.Info("serving", "version", telemetry.Version(), "listen", a.base(), "upstream", a.cfg.Upstream.OpenAI, "memory", a.memoryLine(),
		"openai_base_url", a.base()+"/v1", "anthropic_base_url", a.base(), "inspector", a.inspector())
}

// memoryLine returns the memory in use in a few words, or the faults of its files.
func (a *app) memoryLine() string {
	if t := a.files.notOpened(); t != nil {
		return "OFF, requests are forwarded without memory\n                " + t.What() + "\n                to do: " + t.Remedy
	}
	return cli.MemoryLine(a.cfg)
}

// scheme returns the URL scheme of a listener, client or admin.
func scheme(cfg *config.Config, listener string) string {
	if cfg.TLSFor(listener) {
		return "https://"
	}
	return "http://"
}

// watchSecrets causes a reload when a file of a secret has changed.
func (a *app) watchSecrets(files []string, hup chan<- os.Signal) {
	seen := stampOf(files)
	a.Repeat("checks of secrets", 5*time.Second, func(context.Context) {
		if now := stampOf(files); now != seen {
			seen = now
			select {
			case hup <- syscall.SIGHUP:
			default: // a reload is due
			}
		}
	})
}

func stampOf(files []string) (stamp string) {
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			stamp += info.ModTime().String()
		}
		stamp += "\n"
	}
	return stamp
}

// reload applies a changed configuration. If it has a mistake, the old one stays in force.
func reload(a *app, level *slog.LevelVar, read func() (*config.Config, error), log *slog.Logger) {
	cfg, err := read()
	var waiting []string
	if err == nil {
		waiting, err = a.reload(cfg)
	}
	if err != nil {
		log.Error("reload configuration failed, keeping the old one", "error", err)
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
