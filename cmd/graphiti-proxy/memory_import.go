package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
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

// importFile imports a file, or standard input.
func importFile(c *cobra.Command, at *cli.Runner, in *service.ImportRequest, name string) error {
	file, err := service.OpenImport(name)
	if err != nil {
		return err
	}
	defer file.Close()
	progress := terminal.NewProgress(c.ErrOrStderr(), file.Size)
	im := service.FileImport{Distil: in.Distil, Tell: progress.Show, Call: func(ctx context.Context, lines service.ImportRequest) (service.Imported, error) {
		return cli.Call(ctx, at, service.Import, lines)
	}, Pending: func(ctx context.Context) (int, error) {
		q, err := cli.Call(ctx, at, service.Counts, struct{}{})
		return q.Pending, err
	}}
	done, err := im.Run(c.Context(), in.Selector, io.TeeReader(file, progress))
	if err != nil {
		progress.End()
		if n := done.Kept + done.Known; n > 0 {
			err = fmt.Errorf("%w; %s already imported, run the import again to continue", err, terminal.Count(n, "line"))
		}
		return err
	}
	progress.Done(done.Kept + done.Known)
	return cli.Output(c, done, func(w io.Writer) {
		fmt.Fprintf(w, "%s imported, %d already present\n", terminal.Count(done.Kept, "message"), done.Known)
		if done.Rules > 0 {
			fmt.Fprintf(w, "%s of rules and preferences imported\n", terminal.Count(done.Rules, "line"))
		}
		if len(done.Into) > 0 {
			fmt.Fprintf(w, "into %s\n", terminal.Printable(strings.Join(done.Into, ", ")))
		}
		if done.Waiting > 0 {
			fmt.Fprintf(w, "%s of rules and preferences wait for your confirmation, because this installation did not export them: graphiti-proxy memory pending\n", terminal.Count(done.Waiting, "line"))
		}
		if done.Full > 0 {
			fmt.Fprintf(w, "%s left out: too many rules wait; decide on some first: graphiti-proxy memory pending\n", terminal.Count(done.Full, "rule"))
		}
		if done.LeftOut > 0 {
			fmt.Fprintf(w, "%s left out: replaced by an edit or another answer, hidden, marked as not to remember, or in an unknown form\n", terminal.Count(done.LeftOut, "message"))
		}
		if len(file.Omitted) > 0 {
			fmt.Fprintf(w, "not read, because they contain no conversations: %s\n", terminal.Printable(strings.Join(file.Omitted, ", ")))
		}
		if done.NotTaken > 0 {
			fmt.Fprintf(w, "%s skipped: only an operator may import session notes\n", terminal.Count(done.NotTaken, "line"))
		}
	})
}
