package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

func newWorkspaceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "workspace",
		Short:   "Say which directories belong to a project",
		Example: "  graphiti-proxy workspace join ~/src/widgets-2",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newWorkspaceJoinCommand())
	return c
}

func newWorkspaceJoinCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "join DIR",
		Short: "Have a clone share the memory of the project that its remote names",
		Long: "Have the repository of a directory share the memory of the project that its git\n" +
			"remote names. The first directory that the proxy sees with a remote has the\n" +
			"project; another one that names it, such as an unpacked archive, has a memory of\n" +
			"its own until you say that it is yours. A proxy that runs knows it within a second.",
		Example: "  graphiti-proxy workspace join .\n  graphiti-proxy workspace join ~/src/widgets-2",
		Args:    cli.Needs("a directory"),
		RunE:    joinWorkspace,
	}
	cli.JSONFlag(c)
	return c
}

func joinWorkspace(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Usage(errors.New("name one directory"))
	}
	cfg, err := cli.LoadConfig(c)
	if err != nil {
		return err
	}
	if cfg.Identity.Mode == "multi" {
		return errors.New("identity.mode is multi: there the header X-Graphiti-Workspace names a project, and no directory does")
	}
	if _, err := os.Stat(cfg.DataDir); err != nil {
		return fmt.Errorf("data_dir: there is no directory %s; set data_dir to the one that the proxy uses, or start the proxy first", cfg.DataDir)
	}
	dir := args[0]
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(cli.Dir(c), dir)
	}
	joined, err := workspace.Join(dir, filepath.Join(cfg.DataDir, projectsFile), cfg.Workspace.Clones)
	if err != nil {
		return err
	}
	return cli.Output(c, joined, func(w io.Writer) {
		with := ""
		if len(joined.With) > 0 {
			with = ", with " + strings.Join(joined.With, ", ")
		}
		fmt.Fprintln(w, terminal.Printable(joined.Directory+" belongs to "+service.Selector{Workspace: joined.Workspace}.Whose()+with))
	})
}
