package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
	"github.com/graphiti-proxy/graphiti-proxy/internal/transcripts"
)

func newMemoryImportCommand() *cobra.Command {
	var agents, yes bool
	c := described("memory-import")
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case agents && len(args) > 0:
			return cli.Usage(errors.New("--agents reads the transcripts of this machine: leave out the file"))
		case !agents && yes:
			return cli.Usage(errors.New("--yes is for --agents: a file is imported without it"))
		case !agents && len(args) != 1:
			return cli.Usage(fmt.Errorf("%s needs one file, or - for standard input; see %s --help", c.CommandPath(), c.CommandPath()))
		}
		return nil
	}
	var in service.ImportRequest
	cli.InputFlags(c, &in)
	c.Flags().BoolVar(&agents, "agents", false, "the transcripts of coding agents on this machine, instead of a file")
	c.Flags().BoolVar(&yes, "yes", false, "import the transcripts that --agents lists")
	cli.JSONFlag(c)
	imports := withPlace(makeMemoryFiles, nil, func(c *cobra.Command, args []string, at *cli.Runner) error {
		if agents {
			return importAgents(c, at, false)
		}
		return importFile(c, at, &in, args[0])
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case agents && (in.Distil || in.Selector != (service.Selector{})):
			return cli.Usage(errors.New("--agents finds the project of each conversation: leave out --user, --workspace, --distil and other flags"))
		case agents && !yes:
			return withPlace(openMemoryFiles, nil, func(c *cobra.Command, _ []string, at *cli.Runner) error { return importAgents(c, at, true) })(c, args)
		}
		return imports(c, args)
	}
	return c
}

func importFile(c *cobra.Command, at *cli.Runner, in *service.ImportRequest, name string) error {
	file, err := transcripts.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	progress := terminal.NewProgress(c.ErrOrStderr(), "line", file.Size)
	im := service.FileImport{Lines: transcripts.Lines(io.TeeReader(file, progress)), Distil: in.Distil, Name: service.ImportName(), Tell: progress.Show, Call: func(ctx context.Context, lines service.ImportRequest) (service.Imported, error) {
		return cli.Call(ctx, at, service.Import, lines)
	}}
	done, err := im.Run(c.Context(), in.Selector)
	if progress.End(); err != nil {
		if n := done.Kept + done.Known; n > 0 {
			err = fmt.Errorf("%w; %s already imported, run the import again to continue", err, terminal.Count(n, "line"))
		}
		return err
	}
	return cli.Output(c, done, func(w io.Writer) {
		for _, line := range done.Says(file.Omitted) {
			fmt.Fprintln(w, terminal.Printable(line))
		}
		printUndo(w, done.Undo)
	})
}
