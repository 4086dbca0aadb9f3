package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// nameWorkspace replaces the directory in --workspace, or in --to, with the key of its workspace.
func nameWorkspace(c *cobra.Command, cfg *config.Config) error {
	for _, name := range []string{"workspace", "to"} {
		f := c.Flags().Lookup(name)
		if f == nil || !workspace.IsDirectory(f.Value.String()) {
			continue
		}
		key, err := workspace.OfDirectory(f.Value.String(), filepath.Join(cfg.DataDir, projectsFile), cfg.Workspace.Clones)
		if err == nil {
			err = f.Value.Set(key)
		}
		if err != nil {
			return cli.Usage(fmt.Errorf("--%s: %w; name an existing directory, the URL of a git remote, or a key such as path:/home/me/x", name, err))
		}
	}
	return nil
}

// target returns the proxy of a command line: the owner of its data_dir, or the proxy at an
// address if the command line names only that.
func target(cfg *config.Config) cli.ClientOptions {
	const flag = "flag"
	o := cli.ClientOptions{
		Listen: cfg.Admin.Listen, Token: cfg.Admin.Token, DataDir: cfg.DataDir,
		ByAddress: cfg.Origin("admin.listen") == flag && cfg.Origin("data_dir") != flag,
	}
	if cfg.TLSFor("admin") {
		o.Cert = cfg.TLS.Cert
	}
	return o
}

// standHere sets an empty selector to the project of the current directory and the person's own
// memory. In a project without memory, the selector stays empty. So it does for an export outside of
// repositories, where people make backups of everything.
func standHere(c *cobra.Command, cfg *config.Config, s *service.Selector) {
	if *s != (service.Selector{}) || cfg.Identity.Mode == "multi" {
		return
	}
	repo, key, isRepo := workspace.Around(cli.Dir(c), filepath.Join(cfg.DataDir, projectsFile), cfg.Workspace.Clones)
	if r := rules(cfg); (isRepo || key != "" && c.Name() != "export") && r.Remembers(repo, key) {
		s.Workspace, s.Own = key, true
	}
}

// runAt is a command about memory, with the place of its operations.
type runAt func(c *cobra.Command, args []string, at *cli.Runner) error

// opens opens the files for a command, if no running proxy uses them.
type opens func(ctx context.Context, cfg *config.Config) (*cli.Runner, error)

// withPlace runs a command through the running proxy, or else on files that open opens for
// that time, and prints the place for people. With here, the command only reads: without a
// flag that selects a memory, the current directory selects it.
func withPlace(open opens, here *service.Selector, f runAt) func(*cobra.Command, []string) error {
	return configured(func(c *cobra.Command, args []string, cfg *config.Config) error {
		if err := nameWorkspace(c, cfg); err != nil {
			return err
		}
		if here != nil {
			standHere(c, cfg, here)
		}
		at, err := cli.Find(c.Context(), target(cfg), func() (*cli.Runner, error) { return open(c.Context(), cfg) })
		if err != nil {
			return err
		}
		if !cli.WantsJSON(c) || c.Flags().Lookup("json").Hidden {
			fmt.Fprintln(c.ErrOrStderr(), at.Says)
		}
		return errors.Join(f(c, args, at), at.Close())
	})
}

func configured(run func(c *cobra.Command, args []string, cfg *config.Config) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		cfg, err := cli.LoadConfig(c)
		if err != nil {
			return err
		}
		return run(c, args, cfg)
	}
}

// running is configured for a command that needs a running proxy.
func running(run func(c *cobra.Command, cfg *config.Config, proxy *cli.AdminClient) error) func(*cobra.Command, []string) error {
	return configured(func(c *cobra.Command, _ []string, cfg *config.Config) error {
		proxy, err := cli.FindProxyToShow(c.Context(), target(cfg))
		if err != nil {
			return err
		}
		return run(c, cfg, proxy)
	})
}

// operation completes a command that runs one operation. The fields of its input are flags. With
// here, the command only reads: see withPlace. print prints the answer for people.
func operation[In, Out any](c *cobra.Command, op service.Operation[In, Out], open opens, in *In, here *service.Selector, print func(w, errOut io.Writer, out *Out)) *cobra.Command {
	cli.JSONFlag(c)
	c.RunE = withPlace(open, here, func(c *cobra.Command, _ []string, at *cli.Runner) error {
		return answer(c, at, op, in, here, print)
	})
	return c
}

func answer[In, Out any](c *cobra.Command, at *cli.Runner, op service.Operation[In, Out], in *In, here *service.Selector, print func(w, errOut io.Writer, out *Out)) error {
	out, err := cli.Call(c.Context(), at, op, *in)
	if err != nil {
		return err
	}
	if here != nil {
		sayWhose(c, here)
	}
	return cli.Output(c, out, func(w io.Writer) { print(w, c.ErrOrStderr(), &out) })
}

// misnamed returns an error if data_dir is set to a missing directory: a command that reads
// does not create it. The default directory may be missing.
func misnamed(cfg *config.Config) error {
	if _, err := os.Stat(cfg.DataDir); errors.Is(err, fs.ErrNotExist) && cfg.Origin("data_dir") != "default" {
		return fmt.Errorf("data_dir: no directory %s; set data_dir to the proxy's", cfg.DataDir)
	}
	return nil
}

// openMemoryFiles opens the memory of a proxy that does not run.
func openMemoryFiles(ctx context.Context, cfg *config.Config) (*cli.Runner, error) {
	if err := misnamed(cfg); err != nil {
		return nil, err
	}
	return makeMemoryFiles(ctx, cfg)
}

// makeMemoryFiles is openMemoryFiles, but may create the data directory.
func makeMemoryFiles(ctx context.Context, cfg *config.Config) (*cli.Runner, error) {
	log := slog.New(slog.DiscardHandler) // a command prints its result, not the log
	o := opener{
		settings: newSettings(cfg), log: log, quiet: log, budget: budget.New(inspectTotal(cfg)), known: memo.New(memo.Size),
		files: &files{cfg: cfg, log: log}, stop: &stopStack{Grace: cfg.ShutdownGrace, Log: log},
	}
	memory, _, err := o.open(datadir.Command)
	if broken := o.files.notOpened(); broken != nil {
		err = broken
	}
	if err != nil {
		return nil, errors.Join(err, o.stop.Shutdown(ctx))
	}
	h := memory.host()
	h.Status = func(ctx context.Context, _ bool) (s health.Status) { // there is no earlier answer of the memory
		s.Memory.State = health.StateWorking
		memory.describe(ctx, &s, true)
		return s
	}
	if h.Memory == nil {
		return nil, errors.Join(errors.New(h.Status(ctx, false).Memory.Off()), o.stop.Shutdown(ctx))
	}
	return &cli.Runner{Host: h, Says: "using the files in " + cfg.DataDir + ", which no running proxy uses", Close: func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		return o.stop.Shutdown(ctx)
	}}, nil
}
