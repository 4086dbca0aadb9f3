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
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

func newWorkspaceJoinCommand() *cobra.Command {
	c := described("workspace-join")
	c.Args = cli.NeedsOne("one directory")
	c.RunE = configured(joinWorkspace)
	cli.JSONFlag(c)
	return c
}

func joinWorkspace(c *cobra.Command, args []string, cfg *config.Config) error {
	if cfg.Identity.Mode == "multi" {
		return errors.New("identity.mode is multi: name projects with the header X-Graphiti-Workspace, because directories name none")
	}
	if _, err := os.Stat(cfg.DataDir); err != nil {
		return fmt.Errorf("data_dir: no directory %s; set data_dir to the proxy's, or start the proxy first", cfg.DataDir)
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
